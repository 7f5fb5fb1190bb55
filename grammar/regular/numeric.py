"""Numbers between two bounds, as regular expressions that are exact.

An int without a bound has as many digits as the answer has room for. For a float, a bound of `INTEGER_DIGITS` digits
stands for a missing one; without any bound it may have an exponent.
"""

from collections.abc import Iterator
from decimal import Decimal

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.regular.regex import DIGIT, EMPTY, Regex, digits, either, literal, optional, repeated, then

INTEGER_DIGITS = 18
FRACTION_DIGITS = 15
MOST_EXPONENT = 308 - INTEGER_DIGITS
ZERO = Decimal(0)


def integer(low: int | None, high: int | None) -> Regex:
    """The integers from `low` to `high`, without leading zeros and without `-0`.

    Raises:
        ConstraintError: there are none.
    """
    if low is not None and high is not None and low > high:
        raise ConstraintError(f"no int lies in {low}..{high}")
    return either(*_integers(low, high))


def _integers(low: int | None, high: int | None) -> Iterator[Regex]:
    if low is None or low < 0:
        nearest = 1 if high is None else max(1, -high)
        yield then(literal("-"), either(*_naturals(nearest, None if low is None else -low)))
    if high is None or high >= 0:
        yield from _naturals(0 if low is None else max(0, low), high)


def _naturals(low: int, high: int | None) -> Iterator[Regex]:
    """One expression for the numbers of each length, or one for all where every number of these lengths is in."""
    if low == 0:
        yield literal("0")
        low = 1
    if high is None:
        digits_of_low = len(str(low))
        if low > 10 ** (digits_of_low - 1):
            yield from _naturals(low, 10**digits_of_low - 1)
            digits_of_low += 1
        yield then(digits("1", "9"), repeated(DIGIT, digits_of_low - 1, None))
        return
    if low > high:
        return
    shortest, longest = len(str(low)), len(str(high))
    if low == 10 ** (shortest - 1) and high == 10**longest - 1:
        yield then(digits("1", "9"), repeated(DIGIT, shortest - 1, longest - 1))
        return
    for length in range(shortest, longest + 1):
        yield _same_length(str(max(low, 10 ** (length - 1))), str(min(high, 10**length - 1)))


def _same_length(low: str, high: str) -> Regex:
    """Digit strings of one length between two of that length."""
    if not low:
        return EMPTY
    if low[0] == high[0]:
        return then(digits(low[0], low[0]), _same_length(low[1:], high[1:]))
    rest = len(low) - 1
    first, last = int(low[0]), int(high[0])
    options = []
    if low[1:] != "0" * rest:
        options.append(then(digits(low[0], low[0]), _same_length(low[1:], "9" * rest)))
        first += 1
    if high[1:] != "9" * rest:
        options.append(then(digits(high[0], high[0]), _same_length("0" * rest, high[1:])))
        last -= 1
    if first <= last:
        options.append(then(digits(str(first), str(last)), repeated(DIGIT, rest, rest)))
    return either(*options)


def decimal(low: float | None, high: float | None) -> Regex:
    """The decimal numbers from `low` to `high`, with at most 15 digits after the point; where neither is given, with an
    exponent that keeps them finite, or none.

    Raises:
        ConstraintError: there are none, or a bound has more digits than that.
    """
    least = None if low is None else _exact(low)
    most = None if high is None else _exact(high)
    if least is not None and most is not None and least > most:
        raise ConstraintError(f"no float lies in {low}..{high}")
    options: list[Regex] = []
    if least is None or least < 0:
        nearest = ZERO if most is None else max(ZERO, -most)
        options.append(then(literal("-"), either(*_magnitudes(nearest, None if least is None else -least))))
    if most is None or most >= 0:
        options += _magnitudes(ZERO if least is None else max(ZERO, least), most)
    number = either(*options)
    return then(number, optional(_exponent())) if low is None and high is None else number


def _exponent() -> Regex:
    """At most three digits; so few above 0 that no number before it becomes infinite."""
    above = then(optional(literal("+")), optional(literal("0")), either(*_naturals(0, MOST_EXPONENT)))
    below = then(literal("-"), optional(literal("0")), either(*_naturals(0, 999)))
    return then(either(literal("e"), literal("E")), either(above, below))


def _exact(bound: float) -> Decimal:
    exact = Decimal(repr(float(bound))).normalize()
    exponent = exact.as_tuple().exponent
    if not isinstance(exponent, int) or exponent < -FRACTION_DIGITS or abs(exact) >= 10**INTEGER_DIGITS:
        raise ConstraintError(
            f"the bound {bound} needs more than {INTEGER_DIGITS} digits before or {FRACTION_DIGITS} after the point"
        )
    return exact


def _magnitudes(low: Decimal, high: Decimal | None) -> Iterator[Regex]:
    """Numbers without a sign: those that share a bound's integer part, and all those between."""
    floor, after_low = int(low), _fraction(low)
    if high is not None and floor == int(high):
        yield then(literal(str(floor)), _with_point(after_low, _fraction(high)))
        return
    if after_low:
        yield then(literal(str(floor)), _with_point(after_low, None))
        floor += 1
    last = 10 ** max(INTEGER_DIGITS, len(str(floor))) - 1 if high is None else int(high) - 1
    if floor <= last:
        yield then(either(*_naturals(floor, last)), _with_point("", None))
    if high is not None:
        yield then(literal(str(int(high))), _with_point("", _fraction(high)))


def _fraction(number: Decimal) -> str:
    return f"{number:f}".partition(".")[2].rstrip("0")


def _with_point(low: str, high: str | None) -> Regex:
    """What may follow an integer part so that the fraction lies between; no upper end where `high` is None."""
    fraction = then(literal("."), _fractions(low, high, FRACTION_DIGITS, needs_digit=True))
    return fraction if low else optional(fraction)


def _fractions(low: str, high: str | None, room: int, needs_digit: bool = False) -> Regex:
    """Digits after the point, as numbers from `low` to `high` (both without trailing zeros), at most `room` of them."""
    if not low and high is None:
        return repeated(DIGIT, int(needs_digit), room)
    if not low and not high:
        return repeated(literal("0"), int(needs_digit), room)
    first = int(low[:1] or "0")
    last = 9 if high is None else int(high[:1] or "0")
    ends = [(first, low[1:], high[1:] if high is not None and last == first else None)]
    if last > first and high is not None:
        ends.append((last, "", high[1:]))
    options = [then(literal(str(digit)), _fractions(above, below, room - 1)) for digit, above, below in ends]
    between = (first + 1, last if high is None else last - 1)
    if between[0] <= between[1]:
        options.append(then(digits(str(between[0]), str(between[1])), repeated(DIGIT, 0, room - 1)))
    return either(*options) if low or needs_digit else optional(either(*options))
