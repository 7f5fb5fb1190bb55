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
from promptlang.grammar.schema_document import FORMATS_ENFORCED, FORMATS_REFUSED, Document
from promptlang.grammar.schema_rewriting import rewritten

OPTIONS = {"whitespace_flexible": False, "json_allowed_escapes": 'nrbtf\\"'}
"""No white space, and no `\\uXXXX`: a key written with it would not be taken for the property it names."""

CONTROLS = re.compile(r"[\x00-\x07\x0b\x0e-\x1f]")
"""The characters that JSON can write in no other way."""

CONTROL_IN_PATTERN = re.compile(CONTROLS.pattern + r"|\\(?:x[01]|u00[01]|u\{0*1?[0-9a-fA-F]\}|0|v|c)")
BROAD_SET = re.compile(r"\[(?:\^(?:\\.|[^\]\\])*|(?:\\.|[^\]\\])+-(?:\\.|[^\]\\])+)\]")
"""A set in a pattern of more than one character."""

COUNTS = {f"{bound}{what}" for bound in ("min", "max") for what in ("Length", "Items", "Properties", "Contains")}

IN_ONE = {"additionalItems", "additionalProperties", "items"}
IN_LIST = {"allOf", "anyOf", "items", "prefixItems"}
IN_DICT = {"$defs", "definitions", "patternProperties", "properties"}


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
    ready = _prepared(schema, Document(schema))
    return json.dumps({**ready, "x-guidance": OPTIONS})


def _load(text: str) -> Any:
    if len(text) > MOST_SPECIFICATION:
        raise ConstraintError(f"the schema is longer than {MOST_SPECIFICATION} characters")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"the schema is not JSON: {error}") from error


def _prepared(schema: Any, document: Document) -> Any:
    """One schema and those inside it."""
    if not isinstance(schema, dict):
        return schema
    document.spend()
    with document.deeper("$ref"):
        if document.refs_stand_alone and "$ref" in schema:
            schema = {key: schema[key] for key in ("$ref", "definitions") if key in schema}
        ready = schema
        for step in STEPS:
            ready = step(ready)
        ready = rewritten(ready, document)
        return {key: _inside(key, ready[key], document) for key in sorted(ready, key=_properties_first)}


def _properties_first(keyword: str) -> bool:
    """Properties come in the order in which the schema names them first."""
    return keyword != "properties"


def _inside(keyword: str, value: Any, document: Document) -> Any:
    if keyword in IN_LIST and isinstance(value, list):
        return [_prepared(item, document) for item in value]
    if keyword in IN_DICT and isinstance(value, dict):
        return {name: _prepared(item, document) for name, item in value.items()}
    return _prepared(value, document) if keyword in IN_ONE else value


# Steps -------------------------------------------------------------------------------------------------------


def _without_idle_keywords(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop what says nothing: `then` without `if`, counts of nothing, `uniqueItems: false`, our own options."""
    idle = {"x-guidance"}
    if "if" not in schema:
        idle |= {"then", "else"}
    if "contains" not in schema:
        idle |= {"minContains", "maxContains"}
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
