"""Keywords that are said in others: what they forbid is forbidden, what they allow is allowed."""

import json
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator, Draft202012Validator
from jsonschema.validators import validator_for

from promptlang.grammar.acceptor import accepts, bytes_vocabulary
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import State
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.json_schema.negation import other_texts
from promptlang.grammar.notation import to_grammar
from promptlang.grammar.shapes import Schema
from promptlang.grammar.vocabulary import allows

DRAFT_4 = "http://json-schema.org/draft-04/schema#"
DRAFT_7 = "http://json-schema.org/draft-07/schema#"

VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, -1, 1.5, "", "a", "ab", "b", [], [1], [1, 2], [True], ["a", "b"], [1, 1], [[1]]),
    *({}, {"a": 1}, {"a": "a"}, {"a": 1, "b": 2}, {"b": 2}, {"a": 1, "b": 2, "c": 3}, {"a": None}, {"c": True}),
]


def taken(schema: Any) -> list[Any]:
    """Which of the values a schema's constraint takes."""
    constraint = compile_constraint(Schema(json.dumps(schema)), bytes_vocabulary())
    return [value for value in VALUES if _takes(constraint.start(), json.dumps(value, separators=(",", ":")))]


def _takes(state: State, text: str) -> bool:
    for byte in text.encode():
        if state.is_done() or not allows(state.mask(), byte):
            return False
        state.advance(byte)
    return state.can_end()


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"type": ["string", "object"]}},
        {"not": {"enum": [1, "a", None, True, [1], {}]}},
        {"not": {"allOf": [{"minimum": 1}, {"maxLength": 1}, {"minItems": 1}, {"required": ["a"]}]}},
        {"not": {"not": {"properties": {"a": {"type": "integer"}}, "required": ["a"]}}},
        {"not": {"oneOf": [{"minimum": 1}, {"maximum": 1}]}, "type": "number"},
        {"not": {"if": {"minimum": 1}, "then": {"maximum": 1}, "else": {"minimum": 0}}},
        {"not": {"dependentRequired": {"a": ["b"]}}},
        {"not": {"dependentSchemas": {"a": {"required": ["c"]}}}},
        {"not": {"prefixItems": [{"const": 1}], "items": False}},
        {"not": {"contains": {"const": 1}}, "type": "array"},
        {"not": {"$ref": "#/$defs/small"}, "$defs": {"small": {"maximum": 1}}},
        {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "then": {"required": ["b"]}},
        {"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 1}},
        {"if": {"type": "string"}, "else": {"type": "null"}},
        {"oneOf": [{"minimum": 1}, {"maximum": 0}, {"required": ["a"]}]},
        {"oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
        {"dependentRequired": {"b": ["a"], "c": ["b"]}},
        {"dependentSchemas": {"a": {"properties": {"a": {"type": "integer"}}}}},
        {"propertyNames": {"enum": ["a", "c"]}},
        {"propertyNames": {"pattern": "^[ab]$"}},
        {"propertyNames": {"maxLength": 0}},
        {"propertyNames": {"minLength": 1, "maxLength": 1}},
        {"propertyNames": False},
        {"contains": {"const": 1}, "maxItems": 2},
        {"contains": {"const": 1}, "minContains": 2, "maxItems": 3},
        {"contains": True},
        {"uniqueItems": True, "items": {"enum": [1, 2]}},
        {"uniqueItems": True, "maxItems": 1},
        {"uniqueItems": True, "type": "object"},
        {"uniqueItems": True},
        {"uniqueItems": True, "items": {"type": "integer"}, "minItems": 2},
        {"allOf": [{"uniqueItems": True}, {"items": {"type": ["integer", "array"]}}]},
        {"minProperties": 1, "properties": {"a": {}}},
        {"maxProperties": 1, "properties": {"a": {}, "b": {}}, "additionalProperties": False},
        {"anyOf": [{"properties": {"a": {}}}, {"required": ["b"]}], "unevaluatedProperties": False},
        {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"a": True}}}, "unevaluatedProperties": False},
        {"allOf": [{"prefixItems": [{"const": 1}]}], "unevaluatedItems": {"const": 2}},
        {"$schema": DRAFT_7, "items": [{"const": 1}], "additionalItems": False},
        {"$schema": DRAFT_7, "not": {"const": [1, 2]}},
        {"$schema": DRAFT_7, "dependencies": {"b": ["a"], "c": {"required": ["b"]}}},
        {"$schema": DRAFT_7, "dependentRequired": {"a": ["c"]}},
        {"$schema": DRAFT_4, "minimum": 1, "exclusiveMinimum": True},
        {"$schema": DRAFT_4, "if": {"type": "number"}, "then": False},
        {"$ref": "#/oneOf/0", "oneOf": [{"minimum": 1}, {"type": "null"}]},
        {"$dynamicRef": "#x", "$defs": {"a": {"$dynamicAnchor": "x", "minimum": 1}}},
    ],
    ids=json.dumps,
)
def test_exactly_what_validates_is_taken(schema: dict[str, Any]) -> None:
    validator = validator_for(schema, default=Draft202012Validator)(schema)
    valid = [value for value in VALUES if validator.is_valid(value)]
    assert taken(schema) == valid


def subschemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.sampled_from("abc")
    several = st.lists(inner, min_size=1, max_size=2)
    keywords: dict[str, st.SearchStrategy[Any]] = {
        "type": st.sampled_from(["string", "number", "integer", "object", "array", ["object", "string"]]),
        "const": st.sampled_from(VALUES),
        "enum": st.lists(st.sampled_from(VALUES), min_size=1, max_size=3),
        "minimum": st.integers(0, 2),
        "exclusiveMaximum": st.integers(0, 2),
        "minLength": st.integers(0, 2),
        "maxItems": st.integers(0, 3),
        "minItems": st.integers(0, 2),
        "minProperties": st.integers(0, 1),
        "maxProperties": st.integers(0, 2),
        "required": st.lists(names, max_size=2, unique=True),
        "dependentRequired": st.dictionaries(names, st.lists(names, max_size=1), max_size=2),
        "propertyNames": st.sampled_from([{"enum": ["a", "b"]}, {"maxLength": 1}, {"pattern": "^a"}, False]),
        "uniqueItems": st.booleans(),
        "not": inner,
        "if": inner,
        "then": inner,
        "else": inner,
        "contains": inner,
        "items": inner,
        "additionalProperties": inner,
        "unevaluatedProperties": inner,
        "unevaluatedItems": inner,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "prefixItems": several,
        "properties": st.dictionaries(names, inner, max_size=2),
        "dependentSchemas": st.dictionaries(names, inner, max_size=1),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b", "^[bc]$"]), inner, max_size=1),
        "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
    }
    chosen = st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=3, unique=True)
    return chosen.flatmap(lambda names: st.fixed_dictionaries({name: keywords[name] for name in names}))


LEAVES = st.sampled_from([True, False, {"type": "string"}, {"const": 1}, {"enum": [1, "a", None]}, {"minimum": 2}])
SCHEMAS = st.recursive(LEAVES, subschemas, max_leaves=6).filter(lambda schema: isinstance(schema, dict))


@pytest.mark.slow
@settings(deadline=None, max_examples=600)
@given(schema=SCHEMAS, x=LEAVES, y=LEAVES, is_old=st.booleans())
def test_whatever_is_taken_validates(schema: dict[str, Any], x: Any, y: Any, is_old: bool) -> None:
    whole = {**schema, "$defs": {"x": x, "y": y}, **({"$schema": DRAFT_7} if is_old else {})}
    validator = (Draft7Validator if is_old else Draft202012Validator)(whole)
    try:
        found = taken(whole)
    except ConstraintError:
        assume(False)
    assert all(map(validator.is_valid, found))
    # The order of properties is the schema's, so that an object may be refused that validates; and where one of several
    # alternatives asks for items without repetition, all of them do.
    missing = [value for value in VALUES if value not in found and validator.is_valid(value)]
    repeated = [[1, 1]] if '"uniqueItems": true' in json.dumps(whole) else []
    assert not [value for value in missing if value not in repeated and (not isinstance(value, dict) or len(value) < 2)]


@given(
    texts=st.lists(st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"])), max_size=4),
    other=st.text("ab"),
)
@settings(deadline=None)
def test_all_texts_but_some_are_told_by_one_expression(texts: list[str], other: str) -> None:
    grammar = to_grammar(Schema(json.dumps({"type": "string", "pattern": f"^{other_texts(texts)}$"})), "")
    for text in {*texts, other, *(text + "a" for text in texts), *(text[:-1] for text in texts)}:
        assert accepts(grammar, json.dumps(text, ensure_ascii=False)) == (text not in texts)


def test_a_long_text_can_be_forbidden() -> None:
    grammar = to_grammar(Schema(json.dumps({"type": "string", "not": {"const": "0" * 120}})), "")
    assert [accepts(grammar, json.dumps("0" * count)) for count in (119, 120, 121)] == [True, False, True]
