"""JSON Schemas (drafts 7 and 2020-12), made ready for llguidance, which refuses by name what it can't enforce.

What changes: keywords that say nothing where they stand are dropped, some that it doesn't know are said in others, and
a few that it would take too lightly are refused.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.limits import MOST_SPECIFICATION

OPTIONS = {"whitespace_flexible": False, "json_allowed_escapes": 'nrbtf\\"'}
"""No white space, and no `\\uXXXX`: a key written with it would not be taken for the property it names."""

CONTROLS = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
"""The characters that JSON can write in no other way."""

CONTROL_IN_PATTERN = re.compile(CONTROLS.pattern + r"|\\(?:x[01]|u00[01]|u\{0*1?[0-9a-fA-F]\}|0|v|c)")
BROAD_SET = re.compile(r"\[(?:\^(?:\\.|[^\]\\])*|(?:\\.|[^\]\\])+-(?:\\.|[^\]\\])+)\]")
"""A set in a pattern of more than one character."""

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
COUNTS = {f"{bound}{what}" for bound in ("min", "max") for what in ("Length", "Items", "Properties", "Contains")}

IN_ONE = {"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then"}
IN_LIST = {"allOf", "anyOf", "items", "oneOf", "prefixItems"}
IN_DICT = {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
APPLICATORS = {"$dynamicRef", "$ref", "allOf", "anyOf", "dependencies", "dependentSchemas", "if", "not", "oneOf"}
"""Keywords that can evaluate a property or an item beside the schema's own."""


def prepare(text: str) -> str:
    """A schema as llguidance is to read it.

    Args:
        text: JSON.

    Returns:
        JSON of a schema with options for llguidance.

    Raises:
        ConstraintError: it is no schema, too large, or asks for what can't be enforced.
    """
    schema = _load(text)
    if isinstance(schema, bool):
        schema = {} if schema else {"not": {}}
    if not isinstance(schema, dict):
        raise ConstraintError("a JSON Schema is an object or a bool")
    ready = _prepared(schema, refs_stand_alone="draft-0" in str(schema.get("$schema")))
    return json.dumps({**ready, "x-guidance": OPTIONS})


def _load(text: str) -> Any:
    if len(text) > MOST_SPECIFICATION:
        raise ConstraintError(f"the schema is longer than {MOST_SPECIFICATION} characters")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"the schema is not JSON: {error}") from error


def _prepared(schema: Any, refs_stand_alone: bool) -> Any:
    """One schema and those inside it. Up to draft 7, nothing beside a `$ref` counts (`refs_stand_alone`)."""
    if not isinstance(schema, dict):
        return schema
    if refs_stand_alone and "$ref" in schema:
        return {"$ref": schema["$ref"], **{key: schema[key] for key in ("definitions",) if key in schema}}
    ready = schema
    for step in STEPS:
        ready = step(ready)
    return {key: _inside(key, value, refs_stand_alone) for key, value in ready.items()}


def _inside(keyword: str, value: Any, refs_stand_alone: bool) -> Any:
    if keyword in IN_LIST and isinstance(value, list):
        return [_prepared(item, refs_stand_alone) for item in value]
    if keyword in IN_DICT and isinstance(value, dict):
        return {name: _prepared(item, refs_stand_alone) for name, item in value.items()}
    return _prepared(value, refs_stand_alone) if keyword in IN_ONE else value


# Steps -------------------------------------------------------------------------------------------------------


def _without_idle_keywords(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop what says nothing: `then` without `if`, counts of nothing, `uniqueItems: false`, our own options."""
    idle = {"x-guidance"}
    if "if" not in schema:
        idle |= {"then", "else"}
    if "contains" not in schema:
        idle |= {"minContains", "maxContains"}
    if schema.get("uniqueItems") is False:
        idle.add("uniqueItems")
    return {key: value for key, value in schema.items() if key not in idle}


def _with_whole_counts(schema: dict[str, Any]) -> dict[str, Any]:
    """`2.0` counts as 2."""
    return {
        key: int(value) if key in COUNTS and isinstance(value, float) and value.is_integer() else value
        for key, value in schema.items()
    }


def _with_known_format(schema: dict[str, Any]) -> dict[str, Any]:
    """A format that no draft defines is a remark; one that is defined and can't be enforced is refused."""
    name = schema.get("format")
    if name in FORMATS_REFUSED:
        raise ConstraintError(f'the format "{name}" of a JSON Schema can\'t be enforced')
    known = name is None or name in FORMATS_ENFORCED
    return schema if known else {key: value for key, value in schema.items() if key != "format"}


def _with_plain_unevaluated(schema: dict[str, Any]) -> dict[str, Any]:
    """Where nothing else evaluates properties or items, what is unevaluated is what is additional."""
    if APPLICATORS & schema.keys():
        return schema
    ready = dict(schema)
    if "unevaluatedProperties" in ready:
        ready.setdefault("additionalProperties", ready["unevaluatedProperties"])
        del ready["unevaluatedProperties"]
    if "unevaluatedItems" in ready and "contains" not in ready and not isinstance(ready.get("items"), list):
        ready.setdefault("items", ready["unevaluatedItems"])
        del ready["unevaluatedItems"]
    return ready


def _with_sure_counts(schema: dict[str, Any]) -> dict[str, Any]:
    """A key written twice counts once, so only as many properties are sure as are required, or one."""
    least = schema.get("minProperties", 0)
    required = schema.get("required", [])
    if isinstance(least, int) and isinstance(required, list) and least > max(1, len(set(map(str, required)))):
        raise ConstraintError(
            f"minProperties: {least} of a JSON Schema can't be enforced beyond its required properties"
        )
    return schema


def _with_short_escapes(schema: dict[str, Any]) -> dict[str, Any]:
    """Strings that must be given exactly can't hold what only `\\uXXXX` writes: llguidance would leave it out."""
    for keyword in ("const", "enum", "properties", "required"):
        value = schema.get(keyword)
        exact = _keys(value) if keyword == "properties" else value
        if CONTROLS.search("".join(_strings(exact))):
            raise ConstraintError(f"a control character in {keyword} of a JSON Schema can't be enforced")
    for pattern in (schema.get("pattern"), *_keys(schema.get("patternProperties"))):
        if isinstance(pattern, str) and CONTROL_IN_PATTERN.search(BROAD_SET.sub("", pattern)):
            raise ConstraintError(f"a control character in the pattern /{pattern}/ of a JSON Schema can't be enforced")
    return schema


def _keys(value: Any) -> list[str]:
    return list(value) if isinstance(value, dict) else []


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value, *value.values()])
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


STEPS: tuple[Callable[[dict[str, Any]], dict[str, Any]], ...] = (
    _without_idle_keywords,
    _with_whole_counts,
    _with_known_format,
    _with_plain_unevaluated,
    _with_sure_counts,
    _with_short_escapes,
)


# Instances ---------------------------------------------------------------------------------------------------


def check_instance(text: str, value: Any) -> None:
    """Check JSON data against a schema.

    Raises:
        ValueError: it doesn't fit; `str()` says where and why.
    """
    from jsonschema import Draft202012Validator, ValidationError  # loaded only where a program uses a schema
    from jsonschema.validators import validator_for

    schema = json.loads(text)
    try:
        validator_for(schema, default=Draft202012Validator)(schema).validate(value)
    except ValidationError as error:
        raise ValueError(f"{error.json_path}: {error.message}") from error
