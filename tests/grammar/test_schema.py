"""JSON Schemas: enforced whole, or refused by name."""

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from promptlang.grammar.acceptor import accepts
from promptlang.grammar.checking import check_shape
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.ending import shortest_end
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.lark import to_grammar
from promptlang.grammar.shapes import Schema
from promptlang.grammar.vocabulary import Vocabulary


def takes(schema: Any, text: str) -> bool:
    return accepts(to_grammar(Schema(json.dumps(schema)), ""), text)


SCHEMAS: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 1, "maximum": 120}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": "integer"}}},
    {"type": "array", "items": {"enum": ["x", 'q"', 3, None]}, "minItems": 1, "maxItems": 3},
    {"type": "string", "pattern": '^[^a]{0,3}"?$'},
    {"$defs": {"t": {"type": "object", "properties": {"k": {"$ref": "#/$defs/t"}}}}, "$ref": "#/$defs/t"},
    {"allOf": [{"type": "number", "minimum": 0}, {"maximum": 1}]},
    {"anyOf": [{"type": "string", "maxLength": 2}, {"type": "null"}]},
    {"type": "object", "patternProperties": {"^x": {"type": "boolean"}}, "additionalProperties": {"type": "null"}},
    {"type": "object", "unevaluatedProperties": False, "properties": {"a": {"const": 1}}},
    {"type": "string", "format": "date"},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_every_answer_validates(schema: dict[str, Any], vocabulary: Vocabulary) -> None:
    validator = Draft202012Validator(schema)
    for seed in range(20):
        text = _walk(Schema(json.dumps(schema)), vocabulary, seed)
        validator.validate(json.loads(text))


def _walk(schema: Schema, vocabulary: Vocabulary, seed: int) -> str:
    source, taken = random.Random(seed), b""
    state = compile_constraint(schema, vocabulary).start()
    for _ in range(25):
        if state.is_done():
            return taken.decode()
        token = source.choice(vocabulary.tokens_of(state.mask()))
        state.advance(token)
        taken += vocabulary.token_bytes[token]
    return (taken + b"".join(vocabulary.token_bytes[token] for token in shortest_end(state, 64) or ())).decode()


@pytest.mark.parametrize(
    ("schema", "name"),
    [
        ({"not": {"type": "string"}}, 'keyword "not" of a JSON Schema'),
        ({"if": {"minimum": 1}, "then": {"maximum": 2}}, "if"),
        ({"type": "array", "uniqueItems": True}, "uniqueItems"),
        ({"type": "array", "contains": {"const": 1}}, "contains"),
        ({"type": "object", "propertyNames": {"maxLength": 3}}, "propertyNames"),
        ({"type": "object", "dependentRequired": {"a": ["b"]}}, "dependentRequired"),
        ({"type": "object", "minProperties": 3}, "minProperties"),
        ({"anyOf": [{}], "unevaluatedProperties": False}, "unevaluatedProperties"),
        ({"type": "string", "format": "uri-reference"}, "uri-reference"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, "oneOf"),
        ({"type": "string", "pattern": r"\bfoo"}, "lookaround"),
        ({"type": "string", "pattern": r"^\x00a$"}, "control"),
        ({"const": "a\0b"}, "control"),
        ({"x-guidance": {"lenient": True}, "not": {}}, "not"),
        ({"$ref": "https://example.org/schema"}, "https"),
        ({"type": "objet"}, "objet"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "minLength"),
        ([], "object"),
    ],
    ids=str,
)
def test_what_cannot_be_enforced_is_refused_by_name(schema: Any, name: str, byte_level: Vocabulary) -> None:
    shape = Schema(json.dumps(schema))
    for attempt in (lambda: compile_constraint(shape, byte_level), lambda: check_shape(shape)):
        with pytest.raises(ConstraintError) as caught:
            attempt()
        assert name in str(caught.value)


@pytest.mark.parametrize("text", ["{", "[" * 100_000, '"' + "a" * 2_000_000 + '"'])
def test_what_is_no_schema_is_refused(text: str) -> None:
    with pytest.raises(ConstraintError):
        check_shape(Schema(text))


@pytest.mark.parametrize(
    ("schema", "good", "bad"),
    [
        ({"type": "string", "format": "textarea"}, '"x"', "1"),
        ({"type": "array", "minItems": 2.0}, "[1,2]", "[1]"),
        ({"then": {"const": 1}, "minContains": 3, "uniqueItems": False}, "2", "x"),
        ({"type": "array", "prefixItems": [{"const": 1}], "unevaluatedItems": False}, "[1]", "[1,2]"),
        ({"properties": {"a": {"type": "integer"}}}, '{"b":1}', '{"\\u0061":"x"}'),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "$ref": "#/definitions/a", "type": "null"}
            | {"definitions": {"a": {"const": 1}}},
            "1",
            "null",
        ),
    ],
)
def test_what_a_keyword_says_is_kept(schema: Any, good: str, bad: str) -> None:
    assert takes(schema, good)
    assert not takes(schema, bad)


def test_there_is_no_white_space_and_keys_keep_their_order() -> None:
    schema = {"properties": {"b": {}, "a": {}}, "required": ["a", "b"], "additionalProperties": False}
    assert takes(schema, '{"b":1,"a":2}')
    assert not takes(schema, '{"a":2,"b":1}')
    assert not takes(schema, '{"b": 1,"a":2}')
