"""What is known of a value before the program runs: a shape, or that it is an answer with more to tell or what a fork
made; None where nothing is known."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import TypeAlias

from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape, describe
from promptlang.values.types import union


@dataclass(frozen=True)
class Answered:
    """What an answer binds that has more to tell than its value.

    Attributes:
        shape: of the value.
        extras: the types of what it tells, by the names after a dot.
        selects: which selects chose it (ids of their nodes).
    """

    shape: Shape
    extras: Mapping[str, Shape] = field(hash=False)
    selects: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Branch:
    """A branch of a fork, or a path of a beam.

    Attributes:
        fields: the variables it bound.
        own_parts: what it has beside them.
    """

    fields: Mapping[str, "Static"] = field(hash=False)
    own_parts: Mapping[str, Shape] = field(default_factory=lambda: BRANCH_PARTS, hash=False)

    def part(self, name: str) -> "Static":
        """The type of a field."""
        return self.fields[name] if name in self.fields else self.own_parts[name]

    def part_names(self) -> list[str]:
        return [*self.fields, *self.own_parts]


@dataclass(frozen=True)
class Branches:
    """The list that a fork or a beam binds."""

    branch: Branch


@dataclass(frozen=True)
class Arms:
    """The record of arms that a fork binds."""

    arms: Mapping[str, Branch] = field(hash=False)


Static: TypeAlias = Shape | Answered | Branch | Branches | Arms | None

BRANCH_PARTS: Mapping[str, Shape] = {"text": shapes.Str(), "index": shapes.Int(0), "logprob": shapes.Float()}
PATH_PARTS: Mapping[str, Shape] = {**BRANCH_PARTS, "score": shapes.Float()}

_KINDS: Mapping[type, str] = {
    shapes.Str: "str",
    shapes.Pattern: "str",
    shapes.ContextFree: "str",
    shapes.Int: "int",
    shapes.Float: "float",
    shapes.Bool: "bool",
    shapes.Null: "none",
    shapes.List: "list",
    shapes.Dict: "dict",
    shapes.Record: "record",
}
NUMBERS = frozenset({"int", "float", "bool"})


def shape_of_static(static: Static) -> Shape | None:
    """The shape of a value; None where it has none or none is known."""
    if isinstance(static, Answered):
        return static.shape
    return None if isinstance(static, Branch | Branches | Arms) else static


def kind_of(static: Static) -> str | None:
    """The kind of value: `str`, `int`, `list`, ...; None where it is not known or is one of several."""
    match static:
        case Branch():
            return "branch"
        case Branches():
            return "branches"
        case Arms():
            return "arms"
        case Answered(shape=shape):
            return kind_of(shape)
        case shapes.Constant(value=value):
            return type(value).__name__
        case shapes.Union(options=options):
            kinds = {kind_of(option) for option in options}
            return kinds.pop() if len(kinds) == 1 else None
        case None:
            return None
    return _KINDS.get(type(static))


def name_of(static: Static) -> str:
    """A type as messages say it."""
    match static:
        case Branch():
            return "a branch"
        case Branches():
            return "a list of branches"
        case Arms():
            return "the arms of a fork"
        case Answered(shape=shape):
            return describe(shape)
        case None:
            return "an unknown value"
    return describe(static)


def join(first: Static, second: Static) -> Static:
    """What is known of a value that is one or the other."""
    if first == second:
        return first
    if isinstance(first, Answered) and isinstance(second, Answered):
        extras = {name: shape for name, shape in first.extras.items() if name in second.extras}
        return Answered(union((first.shape, second.shape)), extras, first.selects | second.selects)
    if first is None or second is None or isinstance(first, Answered | Branch | Branches | Arms):
        return None
    return None if isinstance(second, Answered | Branch | Branches | Arms) else union((first, second))


@dataclass(frozen=True)
class Variable:
    """A variable at one place: its type, and whether it has a value on every way there."""

    type: Static
    is_certain: bool = True


@dataclass
class Scope:
    """The variables at one place.

    Attributes:
        variables: by name.
        is_open: whether there may be others, of a branch nothing is known of.
    """

    variables: dict[str, Variable] = field(default_factory=dict)
    is_open: bool = False

    def copy(self) -> "Scope":
        return Scope(dict(self.variables), self.is_open)

    def bind(self, name: str, static: Static) -> None:
        self.variables[name] = Variable(static)


def merge(scopes: list[Scope | None]) -> Scope | None:
    """What is known where several ways meet; None where no way leads there."""
    reached = [scope for scope in scopes if scope is not None]
    return reduce(_merge, reached) if reached else None


def _merge(first: Scope, second: Scope) -> Scope:
    variables = first.variables | second.variables
    for name in variables:
        a, b = first.variables.get(name), second.variables.get(name)
        if a is b:
            continue
        if a is None or b is None:
            known = a or b
            assert known is not None
            variables[name] = Variable(known.type, False)
        else:
            variables[name] = Variable(join(a.type, b.type), a.is_certain and b.is_certain)
    return Scope(variables, first.is_open or second.is_open)
