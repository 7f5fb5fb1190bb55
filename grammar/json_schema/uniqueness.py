"""Which arrays of an answer must hold no value twice: what `uniqueItems` says, place by place."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

from promptlang.grammar.acceptor import finds
from promptlang.grammar.json_schema.drafts import pointed
from promptlang.grammar.json_schema.schema import prepared, without_unique
from promptlang.grammar.shapes import Dict, List, Record, Recursive, Schema, Shape, Union

Key: TypeAlias = str | int
"""The name of a property, or the index of an item."""


@dataclass(frozen=True, eq=False)
class SchemaPart:
    """A part of a prepared schema, and the whole in which its references lead somewhere."""

    schema: Any
    root: Any

    def inside(self, key: Key) -> "list[Part]":
        """What is asked of a property or an item."""
        return [
            SchemaPart(part, self.root) for part in (_properties if isinstance(key, str) else _items)(self.schema, key)
        ]

    def alike(self) -> "list[Part]":
        """The other parts that are asked of the same value."""
        if not isinstance(self.schema, dict):
            return []
        parts = [part for keyword in ("allOf", "anyOf", "oneOf") for part in self.schema.get(keyword, ())]
        reference = self.schema.get("$ref")
        if reference == "#":
            parts.append(self.root)
        elif isinstance(reference, str) and reference.startswith("#/"):
            parts.append(pointed(self.root, reference))
        return [SchemaPart(part, self.root) for part in parts]

    @property
    def is_unique(self) -> bool:
        return isinstance(self.schema, dict) and self.schema.get("uniqueItems") is True


@dataclass(frozen=True)
class ShapePart:
    """A shape around a schema, with the records around it."""

    shape: Shape
    records: tuple[Record, ...] = ()
    is_unique = False

    def inside(self, key: Key) -> "list[Part]":
        """What is asked of a field or an item."""
        match self.shape:
            case List(item=inner) | Dict(value=inner):
                return [ShapePart(inner, self.records)]
            case Record(fields=fields):
                return [ShapePart(field.shape, (*self.records, self.shape)) for field in fields if field.name == key]
        return []

    def alike(self) -> "list[Part]":
        """The other parts that are asked of the same value."""
        match self.shape:
            case Union(options=options):
                return [ShapePart(option, self.records) for option in options]
            case Recursive(name=name):
                return [ShapePart(record, self.records) for record in self.records if record.name == name]
            case Schema(text=text):
                root = prepared(text)
                return [SchemaPart(root, root)]
        return []


Part: TypeAlias = SchemaPart | ShapePart


@dataclass(frozen=True, eq=False)
class Place:
    """A place in an answer, by all that may be asked of what stands there: of alternatives, each counts."""

    parts: tuple[Part, ...]

    @cached_property
    def _all(self) -> list[Part]:
        met: dict[object, Part] = {}
        waiting = [*self.parts]
        while waiting:
            part = waiting.pop()
            key = id(part.schema) if isinstance(part, SchemaPart) else part
            if key not in met:
                met[key] = part
                waiting += part.alike()
        return [*met.values()]

    @property
    def is_unique(self) -> bool:
        """Whether an array here must hold no value twice."""
        return any(part.is_unique for part in self._all)

    def inside(self, key: Key) -> "Place":
        """The place of a property or an item."""
        return Place(tuple(inner for part in self._all for inner in part.inside(key)))


def unique_place(shape: Shape) -> Place | None:
    """The place of a whole answer; None where no array must be without repetition."""
    return Place((ShapePart(shape),)) if any(map(_asks, _schemas(shape))) else None


def _schemas(shape: Shape) -> Iterator[str]:
    match shape:
        case Schema(text=text):
            yield text
        case Union(options=options):
            for option in options:
                yield from _schemas(option)
        case List(item=inner) | Dict(value=inner):
            yield from _schemas(inner)
        case Record(fields=fields):
            for field in fields:
                yield from _schemas(field.shape)


def _asks(text: str) -> bool:
    return '"uniqueItems"' in text and without_unique(prepared(text)) != prepared(text)


def _properties(schema: Any, name: Key) -> list[Any]:
    """What a schema of an object says of one property."""
    if not isinstance(schema, dict):
        return []
    patterns = schema.get("patternProperties", {})
    found = [part for pattern, part in patterns.items() if finds(pattern, str(name))]
    if name in schema.get("properties", {}):
        found.append(schema["properties"][name])
    return found or [schema.get("additionalProperties")]


def _items(schema: Any, index: Key) -> list[Any]:
    """What a schema of an array says of one item."""
    if not isinstance(schema, dict):
        return []
    first = schema.get("prefixItems", ())
    return [first[int(index)] if int(index) < len(first) else schema.get("items")]
