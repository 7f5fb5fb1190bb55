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


class ChoiceValue(str):
    """The option that a select chose: its text, and how all options did.

    Args:
        text: the option.
        probs: the probability of every option.
        scores: the score of every option, under the rule that `by=` names.
    """

    probs: dict[str, float]
    scores: dict[str, float]

    def __new__(cls, text: str, probs: dict[str, float], scores: dict[str, float]) -> "ChoiceValue":
        choice = super().__new__(cls, text)
        choice.probs = probs
        choice.scores = scores
        return choice

    def __getnewargs__(self) -> tuple[str, dict[str, float], dict[str, float]]:  # type: ignore[override]
        return str(self), self.probs, self.scores


@dataclass(frozen=True)
class RecordType:
    """A declared record as a value: calling it builds a `RecordValue`.

    Attributes:
        shape: its fields.
        defaults: values of fields that may be left out.
    """

    shape: shapes.Record
    defaults: Mapping[str, "Value"] = field(default_factory=dict)


Value: TypeAlias = str | int | float | bool | list["Value"] | dict[str, "Value"] | Parts | RecordType | None


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
