"""What `Annotated` says beside a type: our own marks, annotated_types' and pydantic's, read by their attributes."""

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from promptlang.api import marks
from promptlang.api.errors import AnnotationError
from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape

_TEXT_CHARACTER = r"[^\x00-\x08\x0b-\x1f]"
"""What `str` may hold."""


@dataclass(frozen=True)
class Limits:
    """Limits of a value.

    Attributes:
        low, high: of a number, both included.
        above, below: of a number, not included.
        multiple_of: a number's step.
        least, most: the length of text, a list or a dict.
        pattern: what text matches, whole.
        elsewhere: what is checked when the value is there, and can't be promised before.
    """

    low: float | None = None
    high: float | None = None
    above: float | None = None
    below: float | None = None
    multiple_of: float | None = None
    least: int | None = None
    most: int | None = None
    pattern: str | None = None
    elsewhere: str | None = None

    @property
    def of_numbers(self) -> tuple[float | None, ...]:
        return (self.low, self.high, self.above, self.below, self.multiple_of)

    def narrowed(self, **limits: Any) -> "Limits":
        """These and more; of two limits of one kind the narrower."""
        result = self
        for name, limit in limits.items():
            known = getattr(self, name)
            if known is not None:
                if name in ("pattern", "multiple_of") and known != limit:
                    raise AnnotationError(f"two limits of one kind, {known!r} and {limit!r}: write one")
                limit = max(known, limit) if name in ("low", "above", "least") else min(known, limit)
            result = replace(result, **{name: limit})
        return result


_ATTRIBUTES = {
    "ge": "low",
    "gt": "above",
    "le": "high",
    "lt": "below",
    "multiple_of": "multiple_of",
    "min_length": "least",
    "max_length": "most",
}
"""Of annotated_types' and pydantic's marks."""


def limits_of(metadata: Iterable[Any]) -> Limits:
    """What the marks of an annotation say together; what is no limit is passed over.

    Raises:
        AnnotationError: two of them can't both be kept to.
    """
    limits = Limits()
    for mark in metadata:
        limits = _with_mark(limits, mark)
    return limits


def _with_mark(limits: Limits, mark: Any) -> Limits:
    match mark:
        case marks.Range(low=low, high=high):
            return limits.narrowed(low=low, high=high)
        case marks.Pattern(regex=regex):
            return limits.narrowed(pattern=regex)
        case marks.MaxLength(maximum=maximum):
            return limits.narrowed(most=maximum)
        case marks.Length(minimum=minimum, maximum=maximum):
            return limits.narrowed(least=minimum, **({} if maximum is None else {"most": maximum}))
    if isinstance(mark, type):
        return limits
    inner = getattr(mark, "metadata", None)
    for one in inner if isinstance(inner, list | tuple) else ():  # pydantic's Field
        limits = _with_mark(limits, one)
    found = {name: getattr(mark, attribute, None) for attribute, name in _ATTRIBUTES.items()}
    limits = limits.narrowed(**{name: limit for name, limit in found.items() if _is_number(limit)})
    pattern = getattr(mark, "pattern", None)
    pattern = pattern.pattern if isinstance(pattern, re.Pattern) else pattern
    if isinstance(pattern, str):
        limits = limits.narrowed(pattern=_whole(pattern))
    if callable(getattr(mark, "func", None)):
        return replace(limits, elsewhere=type(mark).__name__)
    return limits


def _is_number(limit: Any) -> bool:
    return isinstance(limit, int | float) and math.isfinite(limit)


def _whole(pattern: str) -> str:
    """A pattern that is searched for, as one that matches the whole text."""
    if not pattern.startswith("^") or not pattern.endswith("$") or pattern.endswith("\\$"):
        raise AnnotationError(
            f"the pattern {pattern!r} is searched for inside the text: begin it with ^ and end it with $, or use "
            "promptlang's Pattern, which matches whole"
        )
    return pattern[1:-1]


def limited(shape: Shape, limits: Limits, shown: str) -> Shape:
    """A shape within limits.

    Args:
        shape: which.
        limits: what `limits_of` gives.
        shown: the annotation, for messages.

    Raises:
        AnnotationError: such limits have no meaning for the shape, or can't be held.
    """
    if limits.elsewhere is not None:
        raise AnnotationError(f"{shown}: {limits.elsewhere} can't be enforced; check it in a pydantic model, or later")
    if limits == Limits():
        return shape
    match shape:
        case shapes.Union(options=options):
            return _limited_union(options, limits, shown)
        case shapes.Int() | shapes.Float() if limits == _only_numbers(limits):
            return _limited_number(shape, limits, shown)
        case shapes.Str() if limits == _only_text(limits):
            return _limited_text(limits, shown)
        case shapes.List(item=item) if limits == _only_length(limits):
            _check_order(limits.least, limits.most, shown)
            return shapes.List(item, limits.least, limits.most)
    raise AnnotationError(f"{shown}: {shapes.describe(shape)} has no such limits: {_listed(limits)}")


def _limited_union(options: tuple[Shape, ...], limits: Limits, shown: str) -> shapes.Union:
    """Limits hold for each option but `None`."""
    return shapes.Union(
        tuple(option if isinstance(option, shapes.Null) else limited(option, limits, shown) for option in options)
    )


def _only_numbers(limits: Limits) -> Limits:
    return Limits(limits.low, limits.high, limits.above, limits.below, limits.multiple_of)


def _only_length(limits: Limits) -> Limits:
    return Limits(least=limits.least, most=limits.most)


def _only_text(limits: Limits) -> Limits:
    return replace(_only_length(limits), pattern=limits.pattern)


def _listed(limits: Limits) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in vars(limits).items() if value is not None)


def _check_order(low: float | None, high: float | None, shown: str) -> None:
    if low is not None and high is not None and low > high:
        raise AnnotationError(f"{shown}: nothing lies from {low!r} to {high!r}")


def _limited_number(shape: shapes.Int | shapes.Float, limits: Limits, shown: str) -> Shape:
    is_whole = isinstance(shape, shapes.Int)
    if is_whole:
        limits = _whole_bounds(limits)
    _check_order(limits.low, limits.high, shown)
    if limits.above is not None or limits.below is not None or limits.multiple_of is not None:
        return _number_schema("integer" if is_whole else "number", limits)
    if is_whole:
        return shapes.Int(_as_int(limits.low), _as_int(limits.high))
    return shapes.Float(limits.low, limits.high)


def _as_int(bound: float | None) -> int | None:
    return None if bound is None else int(bound)


def _whole_bounds(limits: Limits) -> Limits:
    """The same limits of whole numbers, with bounds that are whole and included."""
    low = None if limits.low is None else math.ceil(limits.low)
    high = None if limits.high is None else math.floor(limits.high)
    if limits.above is not None:
        above = math.floor(limits.above) + 1
        low = above if low is None else max(low, above)
    if limits.below is not None:
        below = math.ceil(limits.below) - 1
        high = below if high is None else min(high, below)
    return Limits(low, high, multiple_of=limits.multiple_of)


def _number_schema(kind: str, limits: Limits) -> shapes.Schema:
    """Steps and open ends, which only a schema can say; a number is written alike in JSON and bare."""
    words = {
        "type": kind,
        "minimum": limits.low,
        "maximum": limits.high,
        "exclusiveMinimum": limits.above,
        "exclusiveMaximum": limits.below,
        "multipleOf": limits.multiple_of,
    }
    given = {word: value for word, value in words.items() if value is not None}
    return shapes.Schema(json.dumps(given, separators=(",", ":")))


def _limited_text(limits: Limits, shown: str) -> Shape:
    _check_order(limits.least, limits.most, shown)
    if limits.pattern is not None:
        if limits.least is not None or limits.most is not None:
            raise AnnotationError(f"{shown}: a pattern and a length can't both be held; say the length in the pattern")
        return shapes.Pattern(limits.pattern)
    if not limits.least:
        return shapes.Str(limits.most)
    return shapes.Pattern(f"{_TEXT_CHARACTER}{{{limits.least},{'' if limits.most is None else limits.most}}}")
