"""The negation of a JSON Schema, as alternatives that say what there is in place of what there isn't.

A schema is the conjunction of its keywords, so its negation is a disjunction: one keyword or another doesn't hold.
Where a keyword's negation can't be said in JSON Schema without `not`, the schema that asks for it is refused by name.
(Baazizi et al. 2020, "Not Elimination and Witness Generation for JSON Schema", say which can.)
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import TypeAlias

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.json_schema.document import FORMATS, TYPES, Document, Json, stated_types, type_of

ANY_CHARACTER = r"(?:.|\n)"
ANYTHING = f"{ANY_CHARACTER}*"

LONGEST_TEXT = 120
MOST_CHARACTERS = 10_000
"""Of texts that must not be written."""

UNSAYABLE = {
    "$dynamicRef": TYPES,
    "additionalProperties": {"object"},
    "format": {"string"},
    "multipleOf": {"number"},
    "pattern": {"string"},
    "patternProperties": {"object"},
    "propertyNames": {"object"},
    "unevaluatedItems": {"array"},
    "unevaluatedProperties": {"object"},
    "uniqueItems": {"array"},
}
"""Keywords whose negation can't be said, and the types of which they speak."""


@dataclass(frozen=True)
class Premise:
    """What a negation may take for granted: in which document it stands, and which types its values may have."""

    document: Document
    types: frozenset[str] = TYPES

    def inside(self) -> "Premise":
        """The same for a part of the value, whose types aren't known."""
        return Premise(self.document)


def negated(schema: Json, premise: Premise) -> list[Json]:
    """The negation of a schema.

    Args:
        schema: what is negated.
        premise: what is sure of its values.

    Returns:
        Schemas; what one of them allows, and only that, isn't allowed by `schema`. None of them has `not`.

    Raises:
        ConstraintError: it can't be said.
    """
    premise.document.spend()
    if isinstance(schema, bool):
        return [] if schema else [{"type": sorted(premise.types)}]
    if not isinstance(schema, dict):
        raise ConstraintError(f"a part of a JSON Schema is {schema!r}, which is no schema")
    with premise.document.deeper("not"):
        alternatives = [case for keyword in schema for case in _without(keyword, schema, premise)]
    return [case for case in alternatives if stated_types(case) & premise.types]


def _without(keyword: str, schema: dict[str, Json], premise: Premise) -> list[Json]:
    """Alternatives in which one keyword doesn't hold."""
    if keyword in UNSAYABLE:
        if premise.types & UNSAYABLE[keyword] and not _says_nothing(keyword, schema[keyword]):
            raise _unsayable(keyword)
        return []
    negate = NEGATIONS.get(keyword)
    return [] if negate is None else list(negate(schema[keyword], schema, premise))


def _says_nothing(keyword: str, value: Json) -> bool:
    match keyword:
        case "uniqueItems":
            return value is False
        case "patternProperties":
            return isinstance(value, dict) and all(part is True or part == {} for part in value.values())
        case "format":
            return value not in FORMATS
    return value is True or value == {}


def _unsayable(keyword: str) -> ConstraintError:
    return ConstraintError(f'"not" over the keyword "{keyword}" can\'t be enforced')


Alternatives: TypeAlias = Iterator[Json]
Negation: TypeAlias = Callable[[Json, dict[str, Json], Premise], Alternatives]


def _type(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    names = value if isinstance(value, list) else [value]
    if "integer" in names and "number" not in names and "number" in premise.types:
        raise ConstraintError('"not" over the type "integer" can\'t be enforced where other numbers may stand')
    others = premise.types - stated_types(schema)
    if others:
        yield {"type": sorted(others)}


def _const(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    yield from _enum([value], schema, premise)


def _enum(values: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    listed = {name: [value for value in values if type_of(value) == name] for name in sorted(premise.types)}
    others = [name for name, some in listed.items() if not some]
    if others:
        yield {"type": others}
    for name, some in listed.items():
        if some:
            yield from OTHER_VALUES[name](some, premise)


def _other_nulls(values: list[Json], premise: Premise) -> Alternatives:
    yield from ()


def _other_booleans(values: list[Json], premise: Premise) -> Alternatives:
    others = [value for value in (False, True) if value not in values]
    if others:
        yield {"type": "boolean", "enum": others}


def _other_numbers(values: list[Json], premise: Premise) -> Alternatives:
    ordered = sorted(set(values))
    yield {"type": "number", "exclusiveMaximum": ordered[0]}
    for low, high in pairwise(ordered):
        yield {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": high}
    yield {"type": "number", "exclusiveMinimum": ordered[-1]}


def _other_strings(values: list[Json], premise: Premise) -> Alternatives:
    if sum(map(len, values)) > MOST_CHARACTERS or any(len(value) > LONGEST_TEXT for value in values):
        raise ConstraintError('"not" over so many or so long texts in "const" or "enum" can\'t be enforced')
    yield {"type": "string", "pattern": f"^{other_texts(values)}$"}


def other_texts(texts: list[str]) -> str:
    """A regular expression for all texts but some: flat, for engines nest groups only so deep.

    A text is another one if it leaves each of them at some character, or ends before they do.
    """
    nexts: dict[str, dict[str, None]] = {text: {} for text in ["", *texts]}
    for text in texts:
        for end, character in enumerate(text):
            nexts.setdefault(text[:end], {})[character] = None
    options = []
    for prefix, following in nexts.items():
        leaves = f"(?:{_other_character([*following])}{ANYTHING})"
        options.append("".join(map(_character, prefix)) + leaves + ("" if prefix in texts else "?"))
    return f"(?:{'|'.join(options)})"


def _character(character: str) -> str:
    return character if character.isalnum() or ord(character) > 127 else f"[{_in_set(character)}]"


def _other_character(characters: list[str]) -> str:
    return f"[^{''.join(map(_in_set, characters))}]" if characters else ANY_CHARACTER


def _in_set(character: str) -> str:
    return re.sub(r"([\\\]\[^&~-])", r"\\\1", character)


def _other_arrays(values: list[Json], premise: Premise) -> Alternatives:
    """Of one array: all that are longer or shorter, or differ in an item. Of several: what is neither."""
    negations = [negated(_exact_array(value), Premise(premise.document, frozenset({"array"}))) for value in values]
    if len(negations) == 1:
        yield from negations[0]
    else:
        yield {"type": "array", "allOf": [{"anyOf": options} for options in negations]}


def _exact_array(value: list[Json]) -> Json:
    items = {"prefixItems": [{"const": item} for item in value]} if value else {}
    return {"minItems": len(value), "maxItems": len(value), **items}


def _other_objects(values: list[Json], premise: Premise) -> Alternatives:
    if any(values):
        raise ConstraintError('"not" over an object in "const" or "enum" can\'t be enforced')
    yield {"type": "object", "minProperties": 1}


OTHER_VALUES: dict[str, Callable[[list[Json], Premise], Alternatives]] = {
    "null": _other_nulls,
    "boolean": _other_booleans,
    "number": _other_numbers,
    "string": _other_strings,
    "array": _other_arrays,
    "object": _other_objects,
}


def _opposite(type_name: str, keyword: str, step: int = 0) -> Negation:
    """The negation of a bound: the bound from the other side."""

    def negate(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ConstraintError(f"a bound of a JSON Schema is {value!r}, which is no number")
        bound = int(value) + step if step else value
        if not step or bound >= 0:
            yield {"type": type_name, keyword: bound}

    return negate


def _ref(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    yield from negated(premise.document.resolve(value), premise)


def _not(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    if value is not False:
        yield {} if value is True else value


def _all_of(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    for part in value:
        yield from negated(part, premise)


def _any_of(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    yield {"allOf": [{"anyOf": negated(part, premise) or [False]} for part in value]}


def _one_of(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    """None of them, or two at once."""
    yield from _any_of(value, schema, premise)
    for first, second in combinations(value, 2):
        if not premise.document.are_disjoint(first, second):
            premise.document.spend()
            yield {"allOf": [first, second]}


def _if(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    for case in negated(schema.get("then", True), premise):
        yield {"allOf": [value, case]}
    otherwise = negated(schema.get("else", True), premise)
    if otherwise:
        yield {"allOf": [{"anyOf": negated(value, premise) or [False]}, {"anyOf": otherwise}]}


def _required(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    for name in value:
        yield {"type": "object", "properties": {name: False}}


def _properties(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    if "object" not in premise.types:
        return
    for name, part in value.items():
        cases = negated(part, premise.inside())
        if cases:
            yield {"type": "object", "properties": {name: {"anyOf": cases}}, "required": [name]}


def _dependent_required(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    for name, needed in value.items():
        for other in needed:
            if other != name:
                yield {"type": "object", "required": [name], "properties": {other: False}}


def _dependent_schemas(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    for name, part in value.items():
        for case in negated(part, Premise(premise.document, premise.types & {"object"})):
            yield {"type": "object", "required": [name], "allOf": [case]}


def _dependencies(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    yield from _dependent_required(
        {key: part for key, part in value.items() if isinstance(part, list)}, schema, premise
    )
    yield from _dependent_schemas(
        {key: part for key, part in value.items() if not isinstance(part, list)}, schema, premise
    )


def _items(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    """Only `items: false` can be negated: there is an item more."""
    if value is False:
        yield {"type": "array", "minItems": len(schema.get("prefixItems", [])) + 1}
    elif "array" in premise.types and value is not True and value != {}:
        raise _unsayable("items")


def _prefix_items(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    if "array" not in premise.types:
        return
    for index, part in enumerate(value):
        cases = negated(part, premise.inside())
        if cases:
            yield {"type": "array", "minItems": index + 1, "prefixItems": [True] * index + [{"anyOf": cases}]}


def _contains(value: Json, schema: dict[str, Json], premise: Premise) -> Alternatives:
    if "array" not in premise.types or (schema.get("minContains") == 0 and "maxContains" not in schema):
        return
    if schema.get("minContains", 1) != 1 or "maxContains" in schema:
        raise _unsayable("maxContains" if "maxContains" in schema else "minContains")
    yield {"type": "array", "items": {"anyOf": negated(value, premise.inside()) or [False]}}


NEGATIONS: dict[str, Negation] = {
    "$ref": _ref,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "contains": _contains,
    "dependencies": _dependencies,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
    "enum": _enum,
    "exclusiveMaximum": _opposite("number", "minimum"),
    "exclusiveMinimum": _opposite("number", "maximum"),
    "if": _if,
    "items": _items,
    "maxItems": _opposite("array", "minItems", +1),
    "maxLength": _opposite("string", "minLength", +1),
    "maxProperties": _opposite("object", "minProperties", +1),
    "maximum": _opposite("number", "exclusiveMinimum"),
    "minItems": _opposite("array", "maxItems", -1),
    "minLength": _opposite("string", "maxLength", -1),
    "minProperties": _opposite("object", "maxProperties", -1),
    "minimum": _opposite("number", "exclusiveMaximum"),
    "not": _not,
    "oneOf": _one_of,
    "prefixItems": _prefix_items,
    "properties": _properties,
    "required": _required,
    "type": _type,
}
