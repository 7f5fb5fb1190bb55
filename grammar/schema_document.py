"""What a JSON Schema says as a whole: where its references lead, and which types a part of it allows."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias, TypeVar
from urllib.parse import unquote

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.limits import MOST_SCHEMA_PARTS

Part = TypeVar("Part")
Json: TypeAlias = Any
"""A schema or a part of one: a dict or a bool where it is legal, anything where it isn't."""

TYPES = frozenset({"null", "boolean", "object", "array", "number", "string"})
"""Types of JSON; an integer is a number."""

DEEPEST_PART = 40
"""Parts inside parts, and references that lead to references."""

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
        refs_stand_alone: up to draft 7, nothing beside a `$ref` counts.
        parts: how many parts have been looked at or written, against a limit.
        depth: how deep the part at hand is.
    """

    root: Json
    parts: int = 0
    depth: int = 0
    refs_stand_alone: bool = field(init=False)
    anchors: dict[str, list[Json]] = field(init=False, default_factory=dict)
    has_inner_ids: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        is_object = isinstance(self.root, dict)
        self.refs_stand_alone = is_object and "draft-0" in str(self.root.get("$schema"))
        self._find_places()

    def _find_places(self) -> None:
        waiting = [self.root]
        while waiting:
            part = waiting.pop()
            if isinstance(part, dict):
                for keyword in ("$anchor", "$dynamicAnchor"):
                    if isinstance(part.get(keyword), str):
                        self.anchors.setdefault(part[keyword], []).append(part)
                self.has_inner_ids |= part is not self.root and isinstance(part.get("$id", part.get("id")), str)
            waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else []

    def spend(self) -> None:
        """Count a part.

        Raises:
            ConstraintError: there are too many.
        """
        self.parts += 1
        if self.parts > MOST_SCHEMA_PARTS:
            raise ConstraintError(f"a JSON Schema with more than {MOST_SCHEMA_PARTS} parts and cases can't be enforced")

    def spent(self, part: Part) -> Part:
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
            raise ConstraintError(f'"{keyword}" of a JSON Schema can\'t be enforced over what refers to itself')
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
        if not isinstance(reference, str) or not reference.startswith("#") or self.has_inner_ids:
            raise ConstraintError(f'"$ref": {reference!r} of a JSON Schema can\'t be followed here')
        name = unquote(reference[1:])
        if not name or name.startswith("/"):
            return self._pointed(name, reference)
        if len(self.anchors.get(name, [])) != 1:
            raise ConstraintError(f'"$ref": {reference!r} of a JSON Schema leads nowhere, or to several places')
        return self.anchors[name][0]

    def _pointed(self, pointer: str, reference: str) -> Json:
        part = self.root
        for step in pointer.split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(part, dict) and key in part:
                part = part[key]
            elif isinstance(part, list) and key.isdigit() and int(key) < len(part):
                part = part[int(key)]
            else:
                raise ConstraintError(f'"$ref": {reference!r} of a JSON Schema leads nowhere')
        return part

    def followed(self, schema: Json) -> Json:
        """A schema, or where it is only a reference, the one that is meant."""
        for _ in range(DEEPEST_PART):
            if not isinstance(schema, dict) or "$ref" not in schema:
                return schema
            if not self.refs_stand_alone and schema.keys() - {"$ref"} - PLACES:
                return schema
            schema = self.resolve(schema["$ref"])
        raise ConstraintError("references of a JSON Schema go in a circle")

    def types(self, schema: Json) -> frozenset[str]:
        """The types of which a schema may allow values; perhaps too many, never too few."""
        schema = self.followed(schema)
        if not isinstance(schema, dict):
            return frozenset() if schema is False else TYPES
        with self.deeper("$ref"):
            return self._types(schema)

    def _types(self, schema: dict[str, Json]) -> frozenset[str]:
        types = stated_types(schema)
        if "$ref" in schema:
            types = self.types(self.resolve(schema["$ref"])) & (TYPES if self.refs_stand_alone else types)
        if "const" in schema:
            types &= {type_of(schema["const"])}
        if isinstance(schema.get("enum"), list):
            types &= set(map(type_of, schema["enum"]))
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                types &= frozenset[str]().union(*map(self.types, schema[keyword]))
        for part in schema.get("allOf", []):
            types &= self.types(part)
        return types

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
        return any(
            self.are_disjoint(_property(first, name), _property(second, name), depth - 1) for name in required
        )

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
    types = schema.get("type")
    return {"boolean": [False, True], "null": [None]}.get(types) if isinstance(types, str) else None


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
