"""What a JSON Schema says as a whole: where its references lead, and which types a part of it allows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar

from promptlang.grammar.errors import ConstraintError, TooLargeError
from promptlang.grammar.json_schema.drafts import has_inner_ids, pointed
from promptlang.grammar.limits import DEEPEST_PART, MOST_PROPERTIES, MOST_PROPERTIES_IN_ALL, MOST_SCHEMA_PARTS

Counted = TypeVar("Counted")
Json: TypeAlias = Any
"""A schema or a part of one: a dict or a bool where it is legal, anything where it isn't."""

TYPES = frozenset({"null", "boolean", "object", "array", "number", "string"})
"""Types of JSON; an integer is a number."""

FORMATS_ENFORCED = {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid", "uri"}
FORMATS_REFUSED = {
    "idn-email",
    "idn-hostname",
    "iri",
    "iri-reference",
    "json-pointer",
    "regex",
    "relative-json-pointer",
    "uri-reference",
    "uri-template",
}
FORMATS = FORMATS_ENFORCED | FORMATS_REFUSED
"""What a draft defines; any other format is a remark."""

PLACES = {"$anchor", "$defs", "$dynamicAnchor", "$id", "$schema", "definitions", "id"}
"""Keywords that make a place to refer to; a copy of a schema leaves them out."""


@dataclass
class Document:
    """A schema with what its parts must know of the whole.

    Attributes:
        root: the schema.
        parts: how many parts have been looked at or written, against a limit.
        properties: how many have been named by objects, against a limit too.
        depth: how deep the part at hand is.
        has_inner_ids: whether references are reckoned from other places than the root.
    """

    root: Json
    parts: int = 0
    properties: int = 0
    depth: int = 0
    has_inner_ids: bool = field(init=False)
    _target_types: dict[str, frozenset[str]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.has_inner_ids = isinstance(self.root, dict) and has_inner_ids(self.root)

    def spend(self) -> None:
        """Count a part.

        Raises:
            ConstraintError: there are too many.
        """
        self.parts += 1
        if self.parts > MOST_SCHEMA_PARTS:
            raise TooLargeError(f"a JSON Schema with more than {MOST_SCHEMA_PARTS} parts and cases can't be enforced")

    def count_properties(self, named: int) -> None:
        """Count the properties that one object names.

        Raises:
            ConstraintError: there are too many.
        """
        self.properties += named
        if named > MOST_PROPERTIES:
            raise ConstraintError(
                f'"properties" names {named}, more than {MOST_PROPERTIES}: put some into objects inside it'
            )
        if self.properties > MOST_PROPERTIES_IN_ALL:
            raise TooLargeError(
                f"its objects name more than {MOST_PROPERTIES_IN_ALL} properties in all: leave out what isn't needed"
            )

    def spent(self, part: Counted) -> Counted:
        """A part, counted."""
        self.spend()
        return part

    @contextmanager
    def deeper(self, keyword: str) -> Iterator[None]:
        """Go inside a part.

        Raises:
            ConstraintError: it is too deep, as where a reference leads to itself.
        """
        if self.depth > DEEPEST_PART:
            raise ConstraintError(f'"{keyword}" can\'t be enforced over what refers to itself')
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1

    def resolve(self, reference: Json) -> Json:
        """The part that a reference leads to.

        Raises:
            ConstraintError: nothing in this document, or not surely.
        """
        target = self._target(reference)
        if target is None:
            raise ConstraintError(f'"$ref": {reference!r} can\'t be followed here')
        return target

    def _target(self, reference: Json) -> Json:
        """What a reference leads to; None where that isn't sure."""
        if isinstance(reference, str) and reference == "#":
            return self.root
        is_near = isinstance(reference, str) and reference.startswith("#/") and not self.has_inner_ids
        return pointed(self.root, reference) if is_near else None

    def followed(self, schema: Json) -> Json:
        """A schema, or where it is only a reference, the one that is meant."""
        for _ in range(DEEPEST_PART):
            if not isinstance(schema, dict) or "$ref" not in schema or schema.keys() - {"$ref"} - PLACES:
                return schema
            target = self._target(schema["$ref"])
            if target is None:
                return schema
            schema = target
        raise ConstraintError("references of a JSON Schema go in a circle")

    def types(self, schema: Json, depth: int = 20) -> frozenset[str]:
        """The types of which a schema may allow values; perhaps too many, never too few.

        Args:
            schema: which.
            depth: how many schemas inside it are asked.
        """
        if not isinstance(schema, dict) or not depth:
            return frozenset() if schema is False else TYPES
        types = stated_types(schema)
        if "$ref" in schema:
            types &= self._types_of_target(schema["$ref"], depth - 1)
        if "const" in schema:
            types &= {type_of(schema["const"])}
        if isinstance(schema.get("enum"), list):
            types &= set(map(type_of, schema["enum"]))
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                types &= frozenset[str]().union(*(self.types(part, depth - 1) for part in schema[keyword]))
        for part in schema.get("allOf", []):
            types &= self.types(part, depth - 1)
        if isinstance(schema.get("not"), dict) and schema["not"].keys() <= {"type"}:
            types -= self._whole_types(schema["not"])
        return types

    def _types_of_target(self, reference: str, depth: int) -> frozenset[str]:
        """Looked up once a reference; one that leads back to itself adds nothing."""
        if reference not in self._target_types:
            self._target_types[reference] = TYPES
            self._target_types[reference] = self.types(self._target(reference), depth)
        return self._target_types[reference]

    def _whole_types(self, schema: dict[str, Json]) -> frozenset[str]:
        """The types of which a schema with no other keyword allows every value."""
        named = schema.get("type", [])
        is_whole = "number" in named or "integer" not in named
        return stated_types(schema) - (frozenset() if is_whole else {"number"})

    def are_disjoint(self, first: Json, second: Json, depth: int = 3) -> bool:
        """Whether it is plain to see that no value satisfies both schemas."""
        first, second = self.followed(first), self.followed(second)
        if not self.types(first) & self.types(second):
            return True
        if not isinstance(first, dict) or not isinstance(second, dict) or not depth:
            return False
        if self._values_differ(first, second):
            return True
        if not self.types(first) & self.types(second) <= {"object"}:
            return False
        required = {*first.get("required", []), *second.get("required", [])}
        return any(self.are_disjoint(_property(first, name), _property(second, name), depth - 1) for name in required)

    def _values_differ(self, first: Json, second: Json) -> bool:
        one, other = listed(first), listed(second)
        return one is not None and other is not None and not {*map(written, one)} & {*map(written, other)}


def _property(schema: Json, name: str) -> Json:
    """What a schema of an object says of one property."""
    properties = schema.get("properties", {})
    if name in properties:
        return properties[name]
    return schema.get("additionalProperties") is not False or "patternProperties" in schema


def stated_types(schema: dict[str, Json]) -> frozenset[str]:
    """The types that `type` names; all of them where it is missing."""
    stated = schema.get("type", [*TYPES])
    names = stated if isinstance(stated, list) else [stated]
    return frozenset("number" if name == "integer" else str(name) for name in names)


def type_of(value: Json) -> str:
    """The type of a JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def listed(schema: Json) -> list[Json] | None:
    """The values of a schema that lists them."""
    if not isinstance(schema, dict):
        return None
    if "const" in schema:
        return [schema["const"]]
    if isinstance(schema.get("enum"), list):
        return list(schema["enum"])
    if schema.get("type") == "boolean":
        return [False, True]
    return [None] if schema.get("type") == "null" else None


def written(value: Json) -> str:
    """A text that is equal for equal JSON values: `1` and `1.0` are, `1` and `true` aren't."""
    match value:
        case float() if value.is_integer():
            return written(int(value))
        case dict():
            return "{" + ",".join(f"{key!r}:{written(value[key])}" for key in sorted(value)) + "}"
        case list():
            return "[" + ",".join(map(written, value)) + "]"
    return repr(value)
