"""JSON Schemas of every draft said in one: references lead to `$defs`, and keywords are those of 2020-12."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import unquote

from promptlang.grammar.errors import ConstraintError, TooLargeError
from promptlang.grammar.limits import DEEPEST_CHAIN, DEEPEST_PART

IN_ONE = {
    "additionalItems",
    "additionalProperties",
    "contains",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
}
IN_LIST = {"allOf", "anyOf", "items", "oneOf", "prefixItems"}
IN_DICT = {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
"""Where schemas stand in schemas."""

DEFINITIONS = ("$defs", "definitions")

STANDARD_PLACE = re.compile(r"#(?:/(?:\$defs|definitions)/[^/]+)?")
"""References that may stay as they are."""

DEFINITION = re.compile(r"#/(?P<keyword>\$defs|definitions)/(?P<name>[^/]+)")

SINCE_2019 = {
    "$dynamicAnchor",
    "$dynamicRef",
    "dependentRequired",
    "dependentSchemas",
    "maxContains",
    "minContains",
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
}
SINCE_7 = {"if", "then", "else"}
SINCE_6 = {"const", "contains", "propertyNames"}
"""Keywords that say nothing in older drafts."""


COUNTS = {f"{bound}{what}" for bound in ("min", "max") for what in ("Length", "Items", "Properties", "Contains")}
NUMBERS = {"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"}
TEXTS = {"$anchor", "$dynamicAnchor", "$dynamicRef", "$ref", "$schema", "format", "pattern"}


def checked(schema: Any, depth: int = DEEPEST_PART) -> Any:
    """A schema whose keywords have values of the right kinds, at all depths; `2.0` counts as 2.

    Raises:
        ConstraintError: one hasn't, or it is deeper than `depth`.
    """
    if not depth:
        raise TooLargeError(f"schemas inside schemas nest deeper than {DEEPEST_PART}")
    if isinstance(schema, bool):
        return schema
    if not isinstance(schema, dict):
        raise ConstraintError(f"a JSON Schema is an object or a bool, not {json.dumps(schema)[:60]}")
    ready = {keyword: _whole(value) if keyword in COUNTS else value for keyword, value in schema.items()}
    for keyword, value in ready.items():
        if not _is_right_kind(keyword, value):
            raise ConstraintError(f'"{keyword}" can\'t be {json.dumps(value)[:60]}')
    return with_parts(ready, lambda part: checked(part, depth - 1))


def _whole(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _is_right_kind(keyword: str, value: Any) -> bool:
    if keyword in COUNTS:
        return isinstance(value, int) and not isinstance(value, bool) and value >= 0
    if keyword == "multipleOf" and not (isinstance(value, int | float) and value > 0):
        return False
    if keyword in NUMBERS:
        return isinstance(value, int | float) and (keyword.startswith("exclusive") or not isinstance(value, bool))
    if keyword in TEXTS:
        return isinstance(value, str)
    if keyword in ("enum", "required"):
        return isinstance(value, list) and (keyword == "enum" or all(isinstance(name, str) for name in value))
    if keyword == "type":
        return all(isinstance(name, str) for name in (value if isinstance(value, list) else [value]))
    if keyword == "dependentRequired":
        return isinstance(value, dict) and all(_is_right_kind("required", names) for names in value.values())
    if keyword in IN_DICT:
        return isinstance(value, dict)
    return keyword not in IN_LIST - IN_ONE or isinstance(value, list)


def with_parts(schema: dict[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """A schema with a change to each schema right inside it."""

    def changed(keyword: str, value: Any) -> Any:
        if keyword in IN_LIST and isinstance(value, list):
            return [change(part) for part in value]
        if keyword in IN_DICT and isinstance(value, dict):
            return {name: part if isinstance(part, list) else change(part) for name, part in value.items()}
        return change(value) if keyword in IN_ONE else value

    return {keyword: changed(keyword, value) for keyword, value in schema.items()}


def in_newest_draft(schema: Any) -> Any:
    """A schema of any draft as one of 2020-12; where nothing beside a `$ref` counts, nothing is left there.

    Raises:
        ConstraintError: it is no schema.
    """
    schema = checked(schema)
    if isinstance(schema, bool):
        return schema
    draft = str(schema.get("$schema"))
    if "draft-0" in draft:
        unknown = SINCE_2019 | (SINCE_6 | SINCE_7 if "-04" in draft else SINCE_7 if "-06" in draft else set())
        schema = _modern(_with_near_targets(_with_anchors(schema)), unknown, refs_stand_alone=True)
        return {keyword: value for keyword, value in schema.items() if keyword != "$schema"}
    near = _with_near_targets(schema)
    return _modern(near, set(), refs_stand_alone=False) if "2019-09" in draft else near


def _with_anchors(schema: Any) -> Any:
    """What `$anchor` is now was said as `$id: "#name"`."""
    if not isinstance(schema, dict):
        return schema
    ready = with_parts(schema, _with_anchors)
    name = ready.get("$id", ready.get("id"))
    if isinstance(name, str) and re.fullmatch(r"#[^/]+", name):
        ready = {keyword: value for keyword, value in ready.items() if keyword not in ("$id", "id")}
        ready["$anchor"] = name[1:]
    return ready


# References --------------------------------------------------------------------------------------------------


def has_inner_ids(root: dict[str, Any]) -> bool:
    """Whether parts have addresses of their own, from which references are reckoned."""
    return any(
        part is not root and isinstance(name, str) and not name.startswith("#")
        for part in all_parts(root)
        for name in (part.get("$id"), part.get("id"))
    )


def all_parts(value: Any) -> Iterator[dict[str, Any]]:
    """Every dict, also where no schema should stand."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part


REFERENCES = ("$ref", "$dynamicRef")
ANCHORS = ("$anchor", "$dynamicAnchor")


def _with_near_targets(root: dict[str, Any]) -> dict[str, Any]:
    """Copy what references lead to into `$defs`, so that it may change its place.

    Within one document a `$dynamicRef` is a `$ref`: there is no other scope that it could prefer.
    """
    if has_inner_ids(root):
        return dict(root)
    anchored = {part[keyword]: part for part in all_parts(root) for keyword in ANCHORS if _is_text(part, keyword)}
    moved: dict[str, str] = {"#": "#"}
    targets: dict[str, Any] = {}
    for part in all_parts(root):
        for reference in (part[keyword] for keyword in REFERENCES if _is_text(part, keyword)):
            target = pointed(root, reference) if reference.startswith("#/") else anchored.get(reference[1:])
            if reference.startswith("#") and reference != "#" and target is not None:
                name = "at" + re.sub(r"[^A-Za-z0-9]", lambda found: f"-{ord(found[0]):x}-", reference)
                moved[reference] = reference if STANDARD_PLACE.fullmatch(reference) else f"#/$defs/{name}"
                if moved[reference] != reference:
                    targets[name] = target
    whole = {**root, "$defs": {**root.get("$defs", {}), **targets}} if targets else root
    return dict(_renamed(whole, moved))


def _is_text(part: dict[str, Any], keyword: str) -> bool:
    return isinstance(part.get(keyword), str)


def _renamed(schema: Any, moved: dict[str, str]) -> Any:
    if not isinstance(schema, dict):
        return schema
    ready = with_parts(schema, lambda part: _renamed(part, moved))
    dynamic = ready.get("$dynamicRef")
    if dynamic in moved and "$ref" not in ready:
        ready["$ref"] = ready.pop("$dynamicRef")
    if ready.get("$ref") in moved:
        ready["$ref"] = moved[ready["$ref"]]
    if "$dynamicAnchor" in ready:
        ready.setdefault("$anchor", ready.pop("$dynamicAnchor"))
    return ready


def _key(step: str) -> str:
    return step.replace("~1", "/").replace("~0", "~")


def steps_of(reference: str) -> list[str]:
    """The keys on the way of a reference of the form `#/a/b`."""
    return [_key(step) for step in unquote(reference).split("/")[1:]]


def written_reference(reference: str) -> str:
    """A reference as the schema's author wrote it, before it came to lead to a copy in `$defs`."""
    encoded = re.fullmatch(r"#/\$defs/at(-23-.*)", reference)
    return re.sub(r"-([0-9a-f]+)-", lambda found: chr(int(found[1], 16)), encoded[1]) if encoded else reference


def pointed(root: Any, reference: str) -> Any:
    """What a reference of the form `#/a/b` leads to; None where that is nothing."""
    part = root
    for key in steps_of(reference):
        if isinstance(part, dict) and key in part:
            part = part[key]
        elif isinstance(part, list) and key.isdigit() and int(key) < len(part):
            part = part[int(key)]
        else:
            return None
    return part


def with_used_definitions(root: dict[str, Any]) -> dict[str, Any]:
    """A schema without the definitions that no reference leads to: what stands there is never asked.

    Args:
        root: one whose references within it lead to itself or its definitions (see `in_newest_draft`).
    """
    if has_inner_ids(root) or _leads_far(root):
        return root
    bare = _without_definitions(root)
    used: dict[str, dict[str, Any]] = {keyword: {} for keyword in DEFINITIONS}
    waiting = [bare]
    while waiting:
        for part in all_parts(waiting.pop()):
            found = DEFINITION.match(unquote(part["$ref"])) if _is_text(part, "$ref") else None
            if found:
                keyword, name = found["keyword"], _key(found["name"])
                if name in root.get(keyword, {}) and name not in used[keyword]:
                    used[keyword][name] = _without_definitions(root[keyword][name])
                    waiting.append(used[keyword][name])
    return {**bare, **{keyword: definitions for keyword, definitions in used.items() if definitions}}


def _leads_far(root: dict[str, Any]) -> bool:
    """Whether a reference names a document, which may be this one."""
    return any(_is_text(part, "$ref") and not part["$ref"].startswith("#") for part in all_parts(root))


def _without_definitions(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema
    ready = {keyword: value for keyword, value in schema.items() if keyword not in DEFINITIONS}
    return with_parts(ready, _without_definitions)


def check_chain(root: dict[str, Any]) -> None:
    """Check that a schema isn't too deep, references followed where they are first met.

    Raises:
        ConstraintError: it is.
    """
    met: set[str] = set()
    waiting: list[tuple[Any, int]] = [(root, 0)]
    while waiting:
        part, depth = waiting.pop()
        if depth > DEEPEST_CHAIN:
            raise TooLargeError(f"schemas and references inside one another nest deeper than {DEEPEST_CHAIN}")
        inside = _inside(part)
        if isinstance(part, dict) and _is_text(part, "$ref") and part["$ref"] not in met:
            met.add(part["$ref"])
            inside.append(pointed(root, part["$ref"]))
        waiting += [(value, depth + 1) for value in inside if isinstance(value, dict | list)]


def _inside(part: Any) -> list[Any]:
    """What stands in a part; not the definitions, which are met where a reference leads to them."""
    if isinstance(part, dict):
        return [value for keyword, value in part.items() if keyword not in DEFINITIONS]
    return list(part) if isinstance(part, list) else []


# Drafts ------------------------------------------------------------------------------------------------------


def _modern(schema: Any, unknown: set[str], refs_stand_alone: bool) -> Any:
    if not isinstance(schema, dict):
        return schema
    beside = {"$ref", "$defs", "definitions", "$anchor"} if refs_stand_alone and "$ref" in schema else schema.keys()
    ready = {keyword: value for keyword, value in schema.items() if keyword in beside and keyword not in unknown}
    return with_parts(
        _with_modern_bounds(_with_modern_items(ready)), lambda part: _modern(part, unknown, refs_stand_alone)
    )


def _with_modern_items(schema: dict[str, Any]) -> dict[str, Any]:
    """A list of items was what `prefixItems` is now, and what came after it `additionalItems`."""
    more = schema.pop("additionalItems", True)
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        schema["items"] = more
    return schema


def _with_modern_bounds(schema: dict[str, Any]) -> dict[str, Any]:
    """`exclusiveMinimum: true` was said of `minimum`."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if isinstance(schema.get(exclusive), bool):
            is_exclusive = schema.pop(exclusive)
            if is_exclusive and bound in schema:
                schema[exclusive] = schema.pop(bound)
    return schema
