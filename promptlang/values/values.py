"""What a variable can hold while a program runs: plain Python data, and a few values with named parts."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from promptlang.grammar import shapes


class Parts(ABC):
    """A value with named parts (`value.name`)."""

    @abstractmethod
    def part(self, name: str) -> "Value":
        """The part called `name`.

        Raises:
            KeyError: there is none.
        """

    @abstractmethod
    def part_names(self) -> tuple[str, ...]:
        """The names of all parts, in order."""

    def plain(self) -> "Value":
        """What this is written as in JSON."""
        return {name: self.part(name) for name in self.part_names()}


@dataclass(frozen=True)
class RecordValue(Parts):
    """A record, or the arms of a fork.

    Attributes:
        name: the record's name.
        fields: in the record's order.
    """

    name: str
    fields: Mapping[str, "Value"]

    def part(self, name: str) -> "Value":
        return self.fields[name]

    def part_names(self) -> tuple[str, ...]:
        return tuple(self.fields)


class Answered:
    """A plain value that the model gave, with more to tell about it.

    Attributes:
        extras: by the names after a dot: `finish` (why it ended), `probs` and `scores` of a select,
            `logprobs` of a gen.
    """

    extras: Mapping[str, "Value"]

    @abstractmethod
    def plain(self) -> "Value":
        """The value alone."""


class AnsweredText(Answered, str):
    """A text that the model wrote or chose."""

    def plain(self) -> str:
        return str(self)


class AnsweredInt(Answered, int):
    """A whole number that the model wrote."""

    def plain(self) -> int:
        return int(self)


class AnsweredFloat(Answered, float):
    """A number that the model wrote."""

    def plain(self) -> float:
        return float(self)


def answered(value: str | int | float, extras: Mapping[str, "Value"]) -> "Value":
    """The value, equal to what it was, with what there is to tell about it."""
    kind = AnsweredText if isinstance(value, str) else AnsweredInt if isinstance(value, int) else AnsweredFloat
    result = kind(value)
    result.extras = extras
    return result


@dataclass(frozen=True)
class RecordType:
    """A declared record as a value: calling it builds a `RecordValue`.

    Attributes:
        shape: its fields.
        defaults: values of fields that may be left out.
    """

    shape: shapes.Record
    defaults: Mapping[str, "Value"] = field(default_factory=dict)


Value: TypeAlias = str | int | float | bool | list["Value"] | dict[str, "Value"] | Parts | Answered | RecordType | None


def type_name(value: Value) -> str:
    """What a value is, as messages say it."""
    if value is None:
        return "none"
    if isinstance(value, RecordValue):
        return value.name
    if isinstance(value, RecordType):
        return f"the record {value.shape.name}"
    if isinstance(value, Parts):
        return "a branch"
    return next(kind.__name__ for kind in (str, bool, int, float, list, dict) if isinstance(value, kind))


def render_text(value: Value) -> str:
    """The text a value has in a prompt: strings as they are, numbers as Python prints them, `true`, `false`
    and `none`, all
    else as JSON."""
    if isinstance(value, str):
        return str(value)
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return render_json(value)


def render_json(value: Value) -> str:
    """A value as compact JSON.

    Raises:
        TypeError: it has no JSON form (a record's name without its fields).
        RecursionError: it nests too deeply for Python's JSON writer.
    """
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: object) -> object:
    if isinstance(value, Parts):
        return value.plain()
    raise TypeError(f"a {type(value).__name__} has no JSON form")
