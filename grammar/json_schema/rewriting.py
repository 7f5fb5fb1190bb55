"""Keywords of JSON Schema that llguidance doesn't know, said in those that it does.

One function a keyword, from a schema and its document to schemas that hold beside the rest. What can't be said stays
as it is, for llguidance to refuse by name, or is refused here.
"""

from collections.abc import Callable
from itertools import combinations, permutations
from typing import TypeAlias

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.json_schema.document import TYPES, Document, Json, listed, written
from promptlang.grammar.json_schema.evaluation import Case, cases_of
from promptlang.grammar.json_schema.negation import Premise, negated

MOST_UNIQUE = 5
"""Values of which every arrangement is listed for `uniqueItems`."""

MOST_PLACES = 12
"""Items of which each may be the one that `contains` asks for."""

MOST_OPTIONS = 100
"""Options of `oneOf` that are compared with one another."""

Keywords: TypeAlias = dict[str, Json]


def rewritten(schema: Keywords, document: Document) -> Keywords:
    """A schema without the keywords of `REWRITINGS`, and with `allOf` in their place.

    Raises:
        ConstraintError: a keyword can't be said in others.
    """
    gone, added = set[str](), list[Keywords]()
    for keyword, rewrite in REWRITINGS.items():
        parts = rewrite(schema, document) if keyword in schema else None
        if parts is not None:
            gone |= {keyword, *BESIDE.get(keyword, ())}
            added += map(document.spent, parts)
    kept = {keyword: value for keyword, value in schema.items() if keyword not in gone}
    return {**kept, "allOf": [*schema.get("allOf", []), *added]} if added else kept


def _not(schema: Keywords, document: Document) -> list[Keywords]:
    return [any_of(negated(schema["not"], Premise(document, document.types(schema))))]


def any_of(options: list[Json]) -> Keywords:
    """A schema that one of several satisfies; where there are none, nothing does."""
    return {"anyOf": options or [False]}


def _if(schema: Keywords, document: Document) -> list[Keywords]:
    condition, then, otherwise = schema["if"], schema.get("then", True), schema.get("else", True)
    if then is True and otherwise is True:
        return []
    fails = any_of(negated(condition, Premise(document, document.types(schema))))
    return [any_of([{"allOf": [condition, then]}, {"allOf": [fails, otherwise]}])]


def _one_of(schema: Keywords, document: Document) -> list[Keywords] | None:
    """Each option without the others, where it isn't plain that they exclude one another.

    What can't be said without the others is left to llguidance, which may see that they do.
    """
    types, options = document.types(schema), schema["oneOf"]
    if len(options) > MOST_OPTIONS:
        return None
    try:
        return [any_of([_alone(index, options, types, document) for index in range(len(options))])]
    except ConstraintError:
        return None


def _alone(index: int, options: list[Json], types: frozenset[str], document: Document) -> Json:
    option = options[index]
    premise = Premise(document, types & document.types(option))
    others = [other for at, other in enumerate(options) if at != index]
    overlapping = [other for other in others if not document.are_disjoint(option, other)]
    if not overlapping:
        return option
    return {"allOf": [option, *(any_of(negated(other, premise)) for other in overlapping)]}


def _dependent_required(schema: Keywords, document: Document) -> list[Keywords]:
    return [_when_present(name, {"required": [*needed, name]}) for name, needed in schema["dependentRequired"].items()]


def _dependent_schemas(schema: Keywords, document: Document) -> list[Keywords]:
    return [_when_present(name, part) for name, part in schema["dependentSchemas"].items()]


def _dependencies(schema: Keywords, document: Document) -> list[Keywords]:
    return [
        _when_present(name, {"required": [*part, name]} if isinstance(part, list) else part)
        for name, part in schema["dependencies"].items()
    ]


def _when_present(name: str, part: Json) -> Keywords:
    """Of objects with a property, a schema; of all others, nothing."""
    return any_of([{"properties": {name: False}}, {"allOf": [part, {"required": [name]}]}])


def _property_names(schema: Keywords, document: Document) -> list[Keywords]:
    names = document.followed(schema["propertyNames"])
    if isinstance(names, bool):
        return [] if names else [{"additionalProperties": False}]
    keywords = [keyword for keyword in names if keyword != "minLength" or "maxLength" not in names]
    return [part for keyword in keywords for part in _names(keyword, names)]


def _names(keyword: str, names: Keywords) -> list[Keywords]:
    match keyword:
        case "const" | "enum":
            return [{"properties": dict.fromkeys(map(str, listed(names) or []), True), "additionalProperties": False}]
        case "pattern":
            return [_only_names(names["pattern"])]
        case "minLength" | "maxLength" if "pattern" not in names:
            return [_only_names(rf"^(?:.|\n){{{names.get('minLength', 0)},{names.get('maxLength', '')}}}$")]
        case "type" if "string" in (names["type"] if isinstance(names["type"], list) else [names["type"]]):
            return []
        case "title" | "description" | "$comment" | "examples" | "default":
            return []
    raise ConstraintError(f'"propertyNames" with the keyword "{keyword}" can\'t be enforced')


def _only_names(pattern: str) -> Keywords:
    return {"patternProperties": {pattern: True}, "additionalProperties": False}


def _contains(schema: Keywords, document: Document) -> list[Keywords]:
    """Where there are few places, one or another of them has the item."""
    wanted, least = schema["contains"], schema.get("minContains", 1)
    most = _most_items(schema)
    if "maxContains" in schema:
        raise ConstraintError('"maxContains" can\'t be enforced')
    if least == 0:
        return []
    if wanted is True or wanted == {}:
        return [{"minItems": least}]
    others = {"type": sorted(TYPES - {"array"})}
    if wanted is False:
        return [others]
    if most is None or most > MOST_PLACES:
        raise ConstraintError(f'"contains" can\'t be enforced without "maxItems" up to {MOST_PLACES}')
    return [any_of([others, *(document.spent(_at(places, wanted)) for places in combinations(range(most), least))])]


def _most_items(schema: Keywords) -> int | None:
    bounds = [schema["maxItems"]] if "maxItems" in schema else []
    if schema.get("items") is False:
        bounds.append(len(schema.get("prefixItems", [])))
    return min(bounds, default=None)


def _at(places: tuple[int, ...], wanted: Json) -> Keywords:
    last = places[-1] + 1
    return {"type": "array", "minItems": last, "prefixItems": [at not in places or wanted for at in range(last)]}


def _unique_items(schema: Keywords, document: Document) -> list[Keywords] | None:
    """Where an item has few values, the arrays of different ones are listed; else the text is watched (see
    `engines/unique.py`)."""
    most = _most_items(schema)
    if schema["uniqueItems"] is False or "array" not in document.types(schema) or most in (0, 1):
        return []
    if "prefixItems" in schema:
        raise ConstraintError('"uniqueItems" can\'t be enforced beside "prefixItems": its items have several types')
    values = _different(listed(document.followed(schema.get("items"))))
    if values is None or MOST_UNIQUE < len(values) >= schema.get("minItems", 0):
        return None
    lengths = range(schema.get("minItems", 0), min(len(values), len(values) if most is None else most) + 1)
    arrays = [list(array) for length in lengths for array in permutations(values, length)]
    return [any_of([{"type": sorted(TYPES - {"array"})}, {"enum": arrays}])]


def _min_properties(schema: Keywords, document: Document) -> list[Keywords] | None:
    """Where at least one is wanted, one that is named or, without those, any other."""
    least, names, required = schema["minProperties"], schema.get("properties", {}), schema.get("required", [])
    if isinstance(least, int) and least <= len(set(map(str, required))):
        return []
    if least != 1 or not any(part is not False for part in names.values()):
        return None
    others = {"properties": dict.fromkeys(names, False), "minProperties": 1}
    return [any_of([*({"required": [name]} for name in names), others])]


def _max_properties(schema: Keywords, document: Document) -> list[Keywords] | None:
    """Where all are named, some of them; which are required doesn't matter then."""
    names, most = schema.get("properties", {}), schema["maxProperties"]
    if schema.get("additionalProperties") is not False or schema.get("patternProperties") or not isinstance(most, int):
        return None
    if most >= len(names):
        return []
    absent = combinations(names, len(names) - most)
    return [any_of([document.spent({"properties": dict.fromkeys(some, False)}) for some in absent])]


def _different(values: list[Json] | None) -> list[Json] | None:
    return None if values is None else [*{written(value): value for value in values}.values()]


def _unevaluated_properties(schema: Keywords, document: Document) -> list[Keywords]:
    def remaining(case: Case) -> Keywords:
        if case.all_properties:
            return {}
        return {
            "properties": dict.fromkeys(sorted(case.properties), True),
            "patternProperties": dict.fromkeys(sorted(case.patterns), True),
            "additionalProperties": schema["unevaluatedProperties"],
        }

    return _by_case(schema, document, remaining)


def _unevaluated_items(schema: Keywords, document: Document) -> list[Keywords]:
    def remaining(case: Case) -> Keywords:
        if case.all_items:
            return {}
        return {"prefixItems": [True] * case.items, "items": schema["unevaluatedItems"]}

    return _by_case(schema, document, remaining)


def _by_case(schema: Keywords, document: Document, remaining: Callable[[Case], Keywords]) -> list[Keywords]:
    cases = cases_of(schema, document)
    return [any_of([{"allOf": [*case.conditions, remaining(case)]} for case in cases])]


Rewriting: TypeAlias = Callable[[Keywords, Document], list[Keywords] | None]
"""Gives schemas in place of a keyword, or None where it may stay as it is."""

REWRITINGS: dict[str, Rewriting] = {
    "not": _not,
    "if": _if,
    "oneOf": _one_of,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "dependencies": _dependencies,
    "propertyNames": _property_names,
    "contains": _contains,
    "uniqueItems": _unique_items,
    "unevaluatedProperties": _unevaluated_properties,
    "unevaluatedItems": _unevaluated_items,
    "minProperties": _min_properties,
    "maxProperties": _max_properties,
}
BESIDE = {"if": ("then", "else"), "contains": ("minContains", "maxContains")}
