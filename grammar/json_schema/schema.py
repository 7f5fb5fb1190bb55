"""JSON Schemas (drafts 7 and 2020-12), made ready for llguidance, which refuses by name what it can't enforce.

What changes: keywords that say nothing where they stand are dropped, some that it doesn't know are said in others, and
a few that it would take too lightly are refused.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from promptlang.grammar.errors import ConstraintError, TooLargeError
from promptlang.grammar.json_schema.circles import check_circles
from promptlang.grammar.json_schema.document import FORMATS_ENFORCED, FORMATS_REFUSED, Document, stated_types
from promptlang.grammar.json_schema.drafts import (
    REFERENCES,
    all_parts,
    check_chain,
    has_inner_ids,
    in_newest_draft,
    pointed,
    with_parts,
    with_used_definitions,
)
from promptlang.grammar.json_schema.rewriting import rewritten
from promptlang.grammar.limits import MOST_SCHEMA_FILE, MOST_SPECIFICATION

OPTIONS: dict[str, Any] = {"whitespace_flexible": False, "json_allowed_escapes": 'nrbtf\\"'}
"""No white space, and no `\\uXXXX`: a key written with it would not be taken for the property it names, and each value
has one text."""

SPACED = {"item_separator": ", ", "key_separator": ": "}
"""A space behind each comma and colon."""

_LEAP_YEAR = "([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)"
_DAYS = (
    f"([0-9]{{4}}-(0[13-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])|[0-9]{{4}}-02-(0[1-9]|1[0-9]|2[0-8])|{_LEAP_YEAR}-02-29)"
)
DATES = {"date": f"^{_DAYS}$", "date-time": f"^{_DAYS}[Tt]"}
"""What llguidance's formats allow too much of: the 29th of February is only in leap years."""

KEPT = 64
"""Prepared schemas kept in memory."""

REMARKS = ("$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly")
"""Keywords that ask for nothing."""

MOST_EXACT = 1 << 53
"""Up to here every whole number is a float."""

FARTHEST = {
    "minimum": -MOST_EXACT,
    "exclusiveMinimum": -MOST_EXACT,
    "maximum": MOST_EXACT,
    "exclusiveMaximum": MOST_EXACT,
}
"""What a bound beyond is drawn in to."""

CONTROLS = re.compile(r"[\x00-\x07\x0b\x0e-\x1f\x7f]")
"""The characters that JSON can write in no other way, and U+007F, which llguidance writes in no other."""

CONTROL_IN_PATTERN = re.compile(
    CONTROLS.pattern + r"|\\(?:x[01]|x7[fF]|u00[01]|u007[fF]|u\{0*1?[0-9a-fA-F]\}|u\{0*7[fF]\}|0|v|c)"
)
BROAD_SET = re.compile(r"\[(?:\^(?:\\.|[^\]\\])*|(?:\\.|[^\]\\])+-(?:\\.|[^\]\\])+)\]")
"""A set in a pattern of more than one character."""


CLASS_WITH_CONTROLS = re.compile(r"\[\^\]|\[:\^?cntrl|\\(?:p\{?\^?C|P\{?\^?P|p\{\^P|p\{?Other|p\{\w+=)")
"""Sets of characters that may hold all control characters and neither quotation marks nor backslashes, and `[^]`."""

NUL_IN_SET = re.compile(r"\\(?:x00|u0000|u\{0+\}|x\{0+\}|0)(?=-)|\x00(?=-)")
SET = re.compile(r"(?P<other>\\.|[^\\\[])|\[(?P<negation>\^?)", re.DOTALL)


@lru_cache(KEPT)
def prepared(text: str) -> dict[str, Any]:
    """A schema in the keywords that can be enforced; not to be changed.

    Args:
        text: JSON.

    Raises:
        ConstraintError: it is no schema, too large, or asks for what can't be enforced.
    """
    whole = in_newest_draft(_load(text))
    schema = with_used_definitions(whole) if isinstance(whole, dict) else whole
    if isinstance(schema, dict):
        check_circles(schema)
    ready = _prepared(schema, Document(schema))
    if not isinstance(ready, dict):
        ready = {} if ready else {"anyOf": [False]}
    check_chain(ready)
    if without_unique(ready) != ready:
        _check_ways(ready)
    return ready


def _check_ways(root: dict[str, Any]) -> None:
    """Check that every way to an array without repetition can be followed, for the answer's text is followed there."""
    references = [part[key] for part in all_parts(root) for key in REFERENCES if isinstance(part.get(key), str)]
    for reference in references:
        is_near = reference == "#" or (reference.startswith("#/") and pointed(root, reference) is not None)
        if has_inner_ids(root) or not is_near:
            raise ConstraintError(
                f'"uniqueItems" can\'t be enforced in a schema with the reference "{reference}": write "#/$defs/..."'
            )


def prepare(text: str, spaced: bool = False) -> str:
    """A schema as llguidance is to read it, which leaves `uniqueItems` to others.

    Args:
        text: JSON.
        spaced: whether a space stands behind each comma and colon.

    Returns:
        JSON of a schema with options for llguidance.

    Raises:
        ConstraintError: it is no schema, too large, or asks for what can't be enforced.
    """
    ready = json.dumps({**without_unique(prepared(text)), "x-guidance": {**OPTIONS, **(SPACED if spaced else {})}})
    if len(ready) > MOST_SPECIFICATION:
        raise TooLargeError(f"what the schema asks for is longer than {MOST_SPECIFICATION} characters")
    return ready


def without_unique(schema: Any) -> Any:
    """A schema without `uniqueItems`."""
    if not isinstance(schema, dict):
        return schema
    return with_parts({key: value for key, value in schema.items() if key != "uniqueItems"}, without_unique)


def _load(text: str) -> Any:
    if len(text) > MOST_SCHEMA_FILE:
        raise TooLargeError(f"the schema is longer than {MOST_SCHEMA_FILE} characters")
    try:
        return json.loads(text, parse_float=_finite, parse_constant=_finite)
    except (ValueError, RecursionError) as error:
        raise ConstraintError(f"the schema is not JSON: {error}") from error


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ConstraintError(f"{text} in a JSON Schema is no number, or too large: 1e308 is about the largest")
    return number


def _prepared(schema: Any, document: Document) -> Any:
    """One schema and those inside it."""
    if not isinstance(schema, dict):
        return schema
    document.spend()
    document.count_properties(len(schema.get("properties", {})))
    with document.deeper("$ref"):
        if not document.types(schema):
            return False
        ready = schema
        for step in STEPS:
            ready = step(ready)
        ready = with_parts(rewritten(ready, document), lambda part: _prepared(part, document))
        return {keyword: ready[keyword] for keyword in sorted(ready, key=_is_late)}


def _is_late(keyword: str) -> bool:
    """Properties come in the order in which a schema names them first: its own before those of its parts."""
    return keyword != "properties"


# Steps -------------------------------------------------------------------------------------------------------


def _without_idle_keywords(schema: dict[str, Any]) -> dict[str, Any]:
    """Drop what says nothing: remarks, `then` without `if`, counts of nothing, our own options."""
    idle = {"x-guidance", *REMARKS}
    if "if" not in schema:
        idle |= {"then", "else"}
    if "contains" not in schema:
        idle |= {"minContains", "maxContains"}
    return {key: value for key, value in schema.items() if key not in idle}


def _with_known_format(schema: dict[str, Any]) -> dict[str, Any]:
    """A format that no draft defines is a remark; one that is defined and can't be enforced is refused."""
    name = schema.get("format")
    if name in FORMATS_REFUSED:
        raise ConstraintError(f'the format "{name}" can\'t be enforced')
    if name in DATES and "string" in stated_types(schema):
        return {**schema, "allOf": [*schema.get("allOf", []), {"pattern": DATES[name]}]}
    known = name is None or name in FORMATS_ENFORCED
    return schema if known else {key: value for key, value in schema.items() if key != "format"}


def _with_sure_counts(schema: dict[str, Any]) -> dict[str, Any]:
    """A key written twice counts once, so only as many properties are sure as are required, or one."""
    least = schema.get("minProperties", 0)
    required = schema.get("required", [])
    if isinstance(least, int) and isinstance(required, list) and least > max(1, len(set(map(str, required)))):
        raise ConstraintError(f"minProperties: {least} can't be enforced beyond its required properties")
    return schema


def _with_exact_numbers(schema: dict[str, Any]) -> dict[str, Any]:
    """llguidance reckons with floats, which hold every whole number up to 2^53: bounds beyond it are drawn in."""
    for value in _numbers([schema.get("const"), schema.get("enum")]):
        if isinstance(value, int) and abs(value) > MOST_EXACT:
            raise ConstraintError(f"the number {value} can't be enforced: it is beyond 2^53")
    ready = dict(schema)
    for keyword, farthest in FARTHEST.items():
        bound = schema.get(keyword)
        if bound is not None and abs(bound) > MOST_EXACT:
            if (bound > 0) is not (farthest > 0):
                raise ConstraintError(f'"{keyword}": {bound} can\'t be enforced: it is beyond 2^53')
            ready[keyword] = farthest
    return ready


def _numbers(value: Any) -> Iterator[Any]:
    """All numbers in some data."""
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _numbers(item)
    elif isinstance(value, int | float):
        yield value


def _with_short_escapes(schema: dict[str, Any]) -> dict[str, Any]:
    """Strings that must be given exactly can't hold what only `\\uXXXX` writes: llguidance would leave it out."""
    for keyword in ("const", "enum", "properties", "required"):
        value = schema.get(keyword)
        exact = _keys(value) if keyword == "properties" else value
        if CONTROLS.search("".join(_strings(exact))):
            raise ConstraintError(f"a control character in {keyword} can't be enforced")
    for pattern in (schema.get("pattern"), *_keys(schema.get("patternProperties"))):
        if isinstance(pattern, str) and CONTROL_IN_PATTERN.search(BROAD_SET.sub("", pattern)):
            raise ConstraintError(f"a control character in the pattern /{pattern}/ can't be enforced")
    return schema


def _with_sure_sets(schema: dict[str, Any]) -> dict[str, Any]:
    """Keep U+0000, which an answer can't hold, out of the sets in patterns.

    Where a set holds all control characters, llguidance (1.9.1) takes an escaped quotation mark and backslash for
    members, even of `[^"]`.
    """
    ready = dict(schema)
    if "pattern" in ready:
        ready["pattern"] = without_nul(ready["pattern"])
    if "patternProperties" in ready:
        ready["patternProperties"] = {without_nul(key): part for key, part in ready["patternProperties"].items()}
    return ready


def without_nul(pattern: str) -> str:
    """A regular expression whose sets don't hold U+0000.

    Raises:
        ConstraintError: it has a set of which that can't be told.
    """
    if CLASS_WITH_CONTROLS.search(pattern):
        raise ConstraintError(f"a set of characters in the pattern /{pattern}/ can't be enforced")
    whole = NUL_IN_SET.sub(r"\\x01", pattern)
    return SET.sub(lambda found: found["other"] or ("[^\\x00" if found["negation"] else "["), whole)


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
    _with_known_format,
    _with_sure_counts,
    _with_exact_numbers,
    _with_short_escapes,
    _with_sure_sets,
)
