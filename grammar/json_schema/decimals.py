"""Numbers as texts write them: 0.28 is a multiple of 0.01, though their floats are none."""

from decimal import Decimal, InvalidOperation
from typing import Any


class Written(float):
    """A float that keeps the text it was read from, which may have more digits.

    Attributes:
        text: JSON.
    """

    text: str

    def __new__(cls, text: str) -> "Written":
        number = super().__new__(cls, text)
        number.text = text
        return number


class Exact(Decimal):
    """A decimal that messages show as JSON does."""

    def __repr__(self) -> str:
        return str(self)


def with_decimals(value: Any) -> Any:
    """JSON data with decimals in place of floats: those that were written, or the shortest."""
    match value:
        case dict():
            return {key: with_decimals(item) for key, item in value.items()}
        case list():
            return [with_decimals(item) for item in value]
        case float():
            return _exact(value)
    return value


def with_floats(value: Any) -> Any:
    """Data whose floats are plain ones."""
    match value:
        case dict():
            return {key: with_floats(item) for key, item in value.items()}
        case list():
            return [with_floats(item) for item in value]
        case float():
            return float(value)
    return value


def _exact(number: float) -> Exact:
    try:
        return Exact(number.text if isinstance(number, Written) else repr(number))
    except InvalidOperation:  # an exponent of twenty digits
        return Exact(repr(float(number)))


def is_multiple(value: Decimal, divisor: Decimal) -> bool:
    """Whether a number is a multiple of another; no power of ten is written out, however large it is."""
    if not value.is_finite():
        return False
    digits, exponent = _parts(value)
    unit, scale = _parts(divisor)
    if digits == 0 or exponent >= scale:
        return digits * pow(10, exponent - scale, unit) % unit == 0
    return scale - exponent <= len(value.as_tuple().digits) and digits % (unit * 10 ** (scale - exponent)) == 0


def _parts(number: Decimal) -> tuple[int, int]:
    """A finite number's digits as one integer, and the power of ten that it is multiplied by."""
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)
    return int(Decimal((0, digits, 0))), exponent
