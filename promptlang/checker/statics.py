"""What is known of a value before the program runs: a shape, or that it is an answer with more to tell or what a fork
made; None where nothing is known."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from itertools import takewhile
from typing import TypeAlias

from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape, describe
from promptlang.values.types import assignable, field_shape, options_of, union, with_field


@dataclass(frozen=True)
class AnswerType:
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
class BranchType:
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
class BranchesType:
    """The list that a fork or a beam binds."""

    branch: BranchType


@dataclass(frozen=True)
class ArmsType:
    """The record of arms that a fork binds."""

    arms: Mapping[str, BranchType] = field(hash=False)


Static: TypeAlias = Shape | AnswerType | BranchType | BranchesType | ArmsType | None

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
    if isinstance(static, AnswerType):
        return static.shape
    return None if isinstance(static, BranchType | BranchesType | ArmsType) else static


def static_of(shape: Shape) -> Static:
    """What is known of a value that has a shape; nothing where any value has it."""
    return None if isinstance(shape, shapes.AnyJson | shapes.Schema) else shape


def may_be(static: Static, wanted: Shape) -> bool:
    """Whether a value of a type may have a shape."""
    shape = shape_of_static(static)
    return assignable(shape, wanted) if shape is not None else static is None


def kind_of(static: Static) -> str | None:
    """The kind of value: `str`, `int`, `list`, ...; None where it is not known or is one of several."""
    match static:
        case BranchType():
            return "branch"
        case BranchesType():
            return "branches"
        case ArmsType():
            return "arms"
        case AnswerType(shape=shape):
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
        case BranchType():
            return "a branch"
        case BranchesType():
            return "a list of branches"
        case ArmsType():
            return "the arms of a fork"
        case AnswerType(shape=shape):
            return describe(shape)
        case None:
            return "an unknown value"
    return describe(static)


def join(first: Static, second: Static) -> Static:
    """What is known of a value that is one or the other."""
    if first == second:
        return first
    if isinstance(first, AnswerType) and isinstance(second, AnswerType):
        extras = {name: shape for name, shape in first.extras.items() if name in second.extras}
        return AnswerType(union((first.shape, second.shape)), extras, first.selects | second.selects)
    if first is None or second is None or isinstance(first, AnswerType | BranchType | BranchesType | ArmsType):
        return None
    return (
        None
        if isinstance(second, AnswerType | BranchType | BranchesType | ArmsType)
        else _merged(union((first, second)))
    )


def _merged(shape: Shape) -> Shape:
    """A union in which a record stands once, with all that its fields may be: they are narrowed one by one."""
    merged: dict[object, Shape] = {}
    for option in options_of(shape):
        key: object = option
        if isinstance(option, shapes.Record):
            key = (option.name, *(item.name for item in option.fields))
            known = merged.get(key, option)
            assert isinstance(known, shapes.Record)
            for item in option.fields if known != option else ():
                known = with_field(
                    known, item.name, _merged(union((field_shape(known, item.name), field_shape(option, item.name))))
                )
            option = known
        merged[key] = option
    return union(merged.values())


@dataclass(frozen=True)
class Variable:
    """A variable at one place.

    Attributes:
        type: of its value.
        is_certain: whether it has a value on every way there.
        is_argument: whether it is what a program was given, which has only its value to tell.
    """

    type: Static
    is_certain: bool = True
    is_argument: bool = False


@dataclass(eq=False)
class Scope:
    """The variables at one place: what was bound in a block, and what was known where the block began. So a block costs
    what it binds, however much is known around it.

    Attributes:
        own: what the block bound, by name.
        outer: where it began; it stays as it is as long as the block is under way.
        opens: whether the block brought others, of a branch nothing is known of.
    """

    own: dict[str, Variable] = field(default_factory=dict)
    outer: "Scope | None" = None
    opens: bool = False

    def inner(self) -> "Scope":
        """The scope at the start of a block that begins here."""
        return Scope(outer=self)

    @property
    def layers(self) -> "Iterator[Scope]":
        """This scope and those around it, the innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer

    @property
    def is_open(self) -> bool:
        """Whether there may be variables beside those that are known."""
        return any(layer.opens for layer in self.layers)

    def get(self, name: str) -> Variable | None:
        """What is known of a variable; None where there is none."""
        return next((layer.own[name] for layer in self.layers if name in layer.own), None)

    def __contains__(self, name: object) -> bool:
        return any(name in layer.own for layer in self.layers)

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys(name for layer in self.layers for name in layer.own))

    def bind(self, name: str, static: Static) -> None:
        self.own[name] = Variable(static)

    def inside(self, start: "Scope") -> set[str]:
        """The names of what was bound or narrowed in a scope that began at `start`."""
        return {name for layer in takewhile(lambda layer: layer is not start, self.layers) for name in layer.own}

    def since(self, start: "Scope") -> "Scope":
        """A copy of what was bound from the start of a block on, in it and in the blocks in it."""
        layers = [*takewhile(lambda layer: layer is not start, self.layers), start]
        own = {name: known for layer in reversed(layers) for name, known in layer.own.items()}
        return Scope(own, start.outer, any(layer.opens for layer in layers))


def join_scopes(start: Scope, ends: Sequence[Scope | None]) -> Scope | None:
    """What is known where several ways meet; None where no way leads there.

    Args:
        start: where the ways part; takes what they bind.
        ends: a scope in `start` for each way, None for one that leads elsewhere.
    """
    reached = [end for end in ends if end is not None]
    if not reached:
        return None
    start.own |= joined(start, reached)
    start.opens = start.opens or any(end.opens for end in reached)
    return start


def joined(start: Scope, ends: Sequence[Scope]) -> dict[str, Variable]:
    """The variables that some way bound, or all of them narrowed, as they are where the ways meet.

    Args:
        start: where the ways part.
        ends: a scope in `start` for each way.
    """
    changed = [end.inside(start) for end in ends]
    names = dict.fromkeys(name for end in ends for name in end.own)
    names |= {name: None for name in changed[0] if all(name in other for other in changed)}
    return {name: _join_variables([end.get(name) for end in ends]) for name in names}


def _join_variables(ways: Sequence[Variable | None]) -> Variable:
    """A variable where several ways meet, on some of which it has no value."""
    known = [way for way in ways if way is not None]
    if all(way is known[0] for way in ways):
        return known[0]
    is_certain = len(known) == len(ways) and all(way.is_certain for way in known)
    is_argument = all(way.is_argument for way in known)
    return Variable(reduce(join, [way.type for way in known]), is_certain, is_argument)
