"""Marks for `Annotated`: what an answer must be, beside its Python type.

They are checked when they are made, where the program is defined.
"""

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from promptlang.api.errors import MarkError
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.regular.regex_parser import parse


@dataclass(frozen=True)
class Range:
    """A number from `low` to `high`, both included: `Annotated[int, Range(1, 5)]`.

    Raises:
        MarkError: nothing lies between them.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for bound in (self.low, self.high):
            if isinstance(bound, bool) or not isinstance(bound, int | float) or not math.isfinite(bound):
                raise MarkError(f"Range needs two finite numbers, not {bound!r}")
        if self.low > self.high:
            raise MarkError(
                f"nothing lies in Range({self.low!r}, {self.high!r}): write Range({self.high!r}, {self.low!r})"
            )


@dataclass(frozen=True)
class Pattern:
    """Text that a regular expression matches whole: `Annotated[str, Pattern(r"[A-Z]{3}")]`.

    Raises:
        MarkError: it can't be compiled.
    """

    regex: str

    def __post_init__(self) -> None:
        if not isinstance(self.regex, str):
            raise MarkError(f"Pattern needs a regular expression as a string, not {self.regex!r}")
        try:
            parse(self.regex)
        except ConstraintError as error:
            raise MarkError(str(error)) from error


@dataclass(frozen=True)
class MaxLength:
    """Text of at most `maximum` characters: `Annotated[str, MaxLength(40)]`.

    Raises:
        MarkError: it is no whole number above 0.
    """

    maximum: int

    def __post_init__(self) -> None:
        if not _is_count(self.maximum) or self.maximum < 1:
            raise MarkError(f"MaxLength needs a whole number, at least 1, not {self.maximum!r}")


@dataclass(frozen=True)
class Length:
    """A list of `minimum` to `maximum` items: `Annotated[list[str], Length(1, 5)]`; of text, its characters.

    Raises:
        MarkError: nothing is of such a length.
    """

    minimum: int
    maximum: int | None = None

    def __post_init__(self) -> None:
        bounds = (self.minimum,) if self.maximum is None else (self.minimum, self.maximum)
        for bound in bounds:
            if not _is_count(bound):
                raise MarkError(f"Length needs whole numbers, at least 0, not {bound!r}")
        if self.maximum is not None and self.minimum > self.maximum:
            raise MarkError(
                f"nothing is of Length({self.minimum}, {self.maximum}): write Length({self.maximum}, {self.minimum})"
            )


class Schema:
    """A value of a JSON Schema: `Annotated[dict[str, Any], Schema("invoice.schema.json")]`.

    Args:
        schema: as data, or the path of a file that holds it.

    Attributes:
        text: canonical JSON.

    Raises:
        MarkError: the file can't be read, or is no JSON Schema.
    """

    def __init__(self, schema: Mapping[str, Any] | bool | str | os.PathLike[str]) -> None:
        data = _read_schema(schema) if isinstance(schema, str | os.PathLike) else schema
        if not isinstance(data, Mapping | bool):
            raise MarkError("Schema needs a JSON Schema, which is an object, or the path of a file with one")
        try:
            self.text = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
        except (TypeError, ValueError) as error:
            raise MarkError(f"the schema is no JSON: {error}") from error

    def __repr__(self) -> str:
        return f"Schema({self.text})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Schema) and self.text == other.text

    def __hash__(self) -> int:
        return hash((Schema, self.text))


@dataclass(frozen=True)
class Grammar:
    """Text of a context-free grammar in llguidance's Lark dialect: `Annotated[str, Grammar(text)]`."""

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise MarkError(f"Grammar needs the grammar's text, not {self.text!r}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _read_schema(path: str | os.PathLike[str]) -> Any:
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise MarkError(f"the schema {os.fspath(path)} can't be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise MarkError(f"{os.fspath(path)} is no JSON: {error}") from error
