"""Regular expressions as trees of sets of characters, and their text.

Everything regular is built from these four nodes, so that each engine, and Python's `re` which reads values back, sees
explicit sets of characters and nothing that they could take differently.
"""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

SURROGATES = (0xD800, 0xDFFF)
CodeRange: TypeAlias = tuple[int, int]
"""Code points, both ends included."""


@dataclass(frozen=True)
class Characters:
    """One character of a set. `ranges` are sorted and disjoint, and hold no surrogates."""

    ranges: tuple[CodeRange, ...]

    @classmethod
    def of(cls, ranges: Iterable[CodeRange]) -> "Characters":
        """The union of some ranges, in any order."""
        return cls(tuple(_without(_merged(sorted(ranges)), [SURROGATES])))

    def minus(self, other: "Characters") -> "Characters":
        """The characters of this set that the other lacks."""
        return Characters(tuple(_without(self.ranges, other.ranges)))

    def negated(self) -> "Characters":
        """All other characters."""
        return ANY_CHARACTER.minus(self)

    def __contains__(self, character: int) -> bool:
        return any(low <= character <= high for low, high in self.ranges)


@dataclass(frozen=True)
class Concatenation:
    """One after the other; empty for the empty text."""

    parts: "tuple[Regex, ...]"


@dataclass(frozen=True)
class Alternation:
    """One of several; none of them matches nothing at all."""

    options: "tuple[Regex, ...]"


@dataclass(frozen=True)
class Repetition:
    """`low` to `high` times; no upper end where `high` is None."""

    item: "Regex"
    low: int
    high: int | None


Regex: TypeAlias = Characters | Concatenation | Alternation | Repetition


def _merged(ranges: Iterable[CodeRange]) -> list[CodeRange]:
    merged: list[CodeRange] = []
    for low, high in ranges:
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return merged


def _without(ranges: Iterable[CodeRange], holes: Iterable[CodeRange]) -> Iterator[CodeRange]:
    holes = sorted(holes)
    for low, high in ranges:
        for first, last in holes:
            if last < low or first > high:
                continue
            if first > low:
                yield low, first - 1
            low = last + 1
        if low <= high:
            yield low, high


ANY_CHARACTER = Characters.of([(0, sys.maxunicode)])
DIGIT = Characters.of([(ord("0"), ord("9"))])
EMPTY = Concatenation(())


def literal(text: str) -> Regex:
    """Exactly this text."""
    return then(*(Characters.of([(ord(character),) * 2]) for character in text))


def digits(low: str, high: str) -> Characters:
    """One digit from `low` to `high`."""
    return Characters.of([(ord(low), ord(high))])


def then(*parts: Regex) -> Regex:
    """One after the other."""
    return parts[0] if len(parts) == 1 else Concatenation(parts)


def either(*options: Regex) -> Regex:
    """One of several."""
    return options[0] if len(options) == 1 else Alternation(options)


def repeated(item: Regex, low: int, high: int | None) -> Regex:
    """`low` to `high` times; without end where `high` is None."""
    return EMPTY if high == 0 else item if low == high == 1 else Repetition(item, low, high)


def optional(item: Regex) -> Regex:
    """It or nothing."""
    return Repetition(item, 0, 1)


def to_text(regex: Regex) -> str:
    """The expression in the syntax that llguidance and Python's `re` share."""
    match regex:
        case Characters(ranges=ranges):
            return _set_text(ranges)
        case Concatenation(parts=parts):
            return "".join(_grouped(part) if isinstance(part, Alternation) else to_text(part) for part in parts)
        case Alternation(options=options):
            return "|".join(to_text(option) for option in options)
        case Repetition(item=item, low=low, high=high):
            item_text = to_text(item) if isinstance(item, Characters) else _grouped(item)
            return item_text + _count_text(low, high)


def _grouped(regex: Regex) -> str:
    return f"(?:{to_text(regex)})"


def _count_text(low: int, high: int | None) -> str:
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high))
    return short or (f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}")


def _set_text(ranges: tuple[CodeRange, ...]) -> str:
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return _character_text(ranges[0][0])
    return "[" + "".join(_range_text(low, high) for low, high in ranges) + "]"


def _range_text(low: int, high: int) -> str:
    return _character_text(low) if low == high else f"{_character_text(low)}-{_character_text(high)}"


def _character_text(code: int) -> str:
    character = chr(code)
    return character if character.isascii() and character.isalnum() else f"\\U{code:08X}"


def can_begin_with(regex: Regex, characters: Characters) -> bool:
    """Whether a text of the expression is empty or begins with one of these characters."""
    first, can_be_empty = _beginning(regex)
    return can_be_empty or first.minus(characters) != first


def _beginning(regex: Regex) -> tuple[Characters, bool]:
    """The characters that a text of the expression can begin with, and whether it can be empty."""
    match regex:
        case Characters():
            return regex, False
        case Repetition(item=item, low=low, high=high):
            first, can_be_empty = _beginning(item if high != 0 else EMPTY)
            return first, can_be_empty or low == 0
        case Alternation(options=options):
            beginnings = [_beginning(option) for option in options]
            return _union(first for first, _ in beginnings), any(is_empty for _, is_empty in beginnings)
        case Concatenation(parts=parts):
            firsts = []
            for part in parts:
                first, can_be_empty = _beginning(part)
                firsts.append(first)
                if not can_be_empty:
                    return _union(firsts), False
            return _union(firsts), True


def _union(sets: Iterable[Characters]) -> Characters:
    return Characters.of(span for characters in sets for span in characters.ranges)


def nested_count(regex: Regex) -> int:
    """The largest product of the counts of repetitions that stand inside one another."""
    match regex:
        case Characters():
            return 1
        case Concatenation(parts=parts) | Alternation(options=parts):
            return max(map(nested_count, parts), default=1)
        case Repetition(item=item, low=low, high=high):
            return nested_count(item) * max(1, low if high is None else high)
