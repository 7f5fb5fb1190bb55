"""Shapes: what a value may look like.

One algebra serves twice: the checker's static types are shapes, and a `gen` of a shape decodes under a constraint
compiled from it. Shapes are frozen and hashable, so they are keys of the compiled-constraint cache.

At the top of a `gen`, scalars stand bare (`3`, `billing`); inside lists, dicts and records everything is JSON.
"""

from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass(frozen=True)
class Str:
    """Text; at most `maximum` characters where given."""

    maximum: int | None = None


@dataclass(frozen=True)
class Int:
    """A whole number, both ends included."""

    low: int | None = None
    high: int | None = None


@dataclass(frozen=True)
class Float:
    """A number, both ends included."""

    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Bool:
    """`true` or `false`."""


@dataclass(frozen=True)
class Null:
    """`none` (written `null` in JSON, `none` bare)."""


@dataclass(frozen=True, eq=False)
class Constant:
    """Exactly this value. `1`, `1.0` and `true` are three values."""

    value: str | int | float | bool

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and (type(self.value), self.value) == (type(other.value), other.value)

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Pattern:
    """Text that a regular expression matches whole."""

    regex: str


@dataclass(frozen=True)
class Union:
    """One of several, first match first."""

    options: "tuple[Shape, ...]"


@dataclass(frozen=True)
class List:
    item: "Shape"
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True)
class Dict:
    """String keys, values of one shape."""

    value: "Shape"


@dataclass(frozen=True)
class Field:
    name: str
    shape: "Shape"
    required: bool = True


@dataclass(frozen=True)
class Record:
    """A JSON object with these fields, in this order, and no others."""

    name: str
    fields: tuple[Field, ...]


@dataclass(frozen=True)
class Recursive:
    """A use of the enclosing record `name` inside its own fields."""

    name: str


@dataclass(frozen=True)
class AnyJson:
    """Any JSON value."""


@dataclass(frozen=True)
class Schema:
    """A JSON Schema, as canonical JSON text; `file` is what messages call it."""

    text: str
    file: str = field(default="the JSON Schema", compare=False)


@dataclass(frozen=True)
class ContextFree:
    """A context-free grammar in llguidance's Lark dialect; `file` is what messages call it."""

    text: str
    file: str = field(default="the grammar", compare=False)


Shape: TypeAlias = (
    Str
    | Int
    | Float
    | Bool
    | Null
    | Constant
    | Pattern
    | Union
    | List
    | Dict
    | Record
    | Recursive
    | AnyJson
    | Schema
    | ContextFree
)


def describe(shape: Shape) -> str:
    """A shape as a program writes it."""
    match shape:
        case Str(maximum=maximum):
            return "str" if maximum is None else f"str(max={maximum})"
        case Int(low=low, high=high) | Float(low=low, high=high):
            name = "int" if isinstance(shape, Int) else "float"
            return name if low is None or high is None else f"{name} in {low}..{high}"
        case Bool():
            return "bool"
        case Null():
            return "none"
        case Constant(value=bool() as value):
            return "true" if value else "false"
        case Constant(value=str() as value):
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
        case Constant(value=value):
            return repr(value)
        case Pattern(regex=regex):
            return "/" + regex.replace("/", "\\/") + "/"
        case Union(options=options):
            return " | ".join(map(describe, options))
        case List(item=item, minimum=minimum, maximum=maximum):
            bounds = "" if minimum is None or maximum is None else f", {minimum}..{maximum}"
            return f"list[{describe(item)}{bounds}]"
        case Dict(value=value_shape):
            return f"dict[str, {describe(value_shape)}]"
        case Record(name=name) | Recursive(name=name):
            return name
        case AnyJson():
            return "json"
        case Schema():
            return "a value of the schema"
        case ContextFree():
            return "a text of the grammar"
