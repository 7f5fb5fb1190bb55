"""JSON Schemas: enforced whole, or refused by name."""

import json
import random
import re
import sys
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from promptlang.grammar.acceptor import accepts
from promptlang.grammar.checking import check_shape
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.ending import shortest_end
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.notation import to_grammar
from promptlang.grammar.reader import read, validate
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
    {"type": ["integer", "string"], "not": {"enum": [3, "no", "not"]}},
    {"type": "array", "uniqueItems": True, "items": {"enum": ["a", "b", "c"]}},
    {"type": "array", "contains": {"const": 1}, "maxItems": 3, "items": {"type": "integer"}},
    {
        "type": "object",
        "properties": {"kind": {"enum": ["card", "cash"]}, "number": {"type": "integer", "minimum": 0}},
        "required": ["kind"],
        "additionalProperties": False,
        "if": {"properties": {"kind": {"const": "card"}}},
        "then": {"required": ["number"]},
        "else": {"properties": {"number": False}},
    },
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
        ({"not": {"pattern": "a"}}, '"not" over the keyword "pattern"'),
        ({"not": {"type": "integer"}}, '"not" over the type "integer"'),
        ({"not": {"const": {"a": 1}}}, "an object"),
        ({"not": {"const": "a" * 1000}}, "long texts"),
        ({"not": {"$ref": "other.json"}}, "other.json"),
        ({"not": {"$ref": "#/nowhere"}}, "#/nowhere"),
        ({"if": {"patternProperties": {"a": False}}, "then": {"maximum": 2}}, "patternProperties"),
        ({"type": "array", "uniqueItems": True, "prefixItems": [{}]}, "uniqueItems"),
        ({"$id": "urn:a", "$ref": "urn:a#/$defs/a", "$defs": {"a": {"uniqueItems": True}}}, "uniqueItems"),
        ({"items": {"uniqueItems": True}, "allOf": [{"$id": "b", "$defs": {"x": {}}, "$ref": "#/$defs/x"}]}, "unique"),
        ({"type": "array", "contains": {"const": 1}}, "contains"),
        ({"type": "array", "contains": {"const": 1}, "maxItems": 3, "maxContains": 1}, "maxContains"),
        ({"type": "object", "propertyNames": {"not": {"const": "a"}}}, "propertyNames"),
        ({"type": "object", "minProperties": 3}, "minProperties"),
        ({"contains": {"const": 1}, "unevaluatedItems": False, "maxItems": 2}, "unevaluatedItems"),
        ({"type": "string", "format": "uri-reference"}, "uri-reference"),
        ({"oneOf": [{"type": "integer"}, {"minimum": 2}]}, "oneOf"),
        ({"$dynamicRef": "other.json#a"}, "$dynamicRef"),
        ({"type": "string", "pattern": r"\bfoo"}, "lookaround"),
        ({"type": "string", "pattern": r"^\x00a$"}, "control"),
        ({"type": "string", "pattern": r"^[^]a]$"}, "set"),
        ({"type": "string", "pattern": r"^\p{Cc}$"}, "set"),
        ({"const": "a\0b"}, "control"),
        ({"enum": ["a\x7f"]}, "control"),
        ({"type": "string", "pattern": r"^\x7F$"}, "control"),
        ({"x-guidance": {"lenient": True}, "type": "string", "format": "iri"}, "iri"),
        ({"not": {}}, "no value"),
        ({"$ref": "https://example.org/schema"}, "https"),
        ({"multipleOf": 0.07}, "multipleOf"),
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


@pytest.mark.parametrize(
    "schema",
    [
        {"not": 3},
        {"oneOf": {}},
        {"anyOf": [1]},
        {"properties": []},
        {"properties": {"a": 1}},
        {"required": "a"},
        {"required": [1]},
        {"minItems": -1},
        {"minItems": 1.5},
        {"minimum": "1"},
        {"enum": 1},
        {"$ref": 1},
        {"dependentRequired": {"a": "b"}},
        {"type": 1},
        {"pattern": None},
        {"if": "x"},
        {"contains": None},
    ],
    ids=json.dumps,
)
def test_a_keyword_with_a_value_of_the_wrong_kind_is_named(schema: Any) -> None:
    with pytest.raises(
        ConstraintError, match="|".join(re.escape(keyword) for keyword in [*schema, "is an object or a bool"])
    ):
        check_shape(Schema(json.dumps(schema)))


def calls(work: Callable[[], None]) -> int:
    """How many functions a piece of work calls."""
    count = 0

    def see(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(see)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("keywords", [("$ref", "$defs"), ("$defs", "$ref")])
def test_a_chain_of_references_is_too_deep_wherever_its_definitions_stand(keywords: tuple[str, str]) -> None:
    parts: dict[str, Any] = {
        "$ref": "#/$defs/a0",
        "$defs": {f"a{n}": {"items": {"$ref": f"#/$defs/a{n + 1}"}} for n in range(3000)},
    }
    with pytest.raises(ConstraintError, match="deeper"):
        check_shape(Schema(json.dumps({keyword: parts[keyword] for keyword in keywords})))


@pytest.mark.slow
def test_a_schema_that_would_make_much_work_is_refused_after_little() -> None:
    options = [{"properties": {f"p{index}": {"type": "string"}}, "required": [f"p{index}"]} for index in range(90)]
    deep: Any = {}
    for _ in range(200):
        deep = {"not": deep}
    for schema in (
        {"oneOf": options},
        {"anyOf": options, "unevaluatedProperties": False},
        {"additionalProperties": False, "properties": dict.fromkeys(map(str, range(30)), True), "maxProperties": 15},
        {"$defs": {f"a{n}": {"$ref": f"#/$defs/a{n + 1}"} for n in range(5000)}, "$ref": "#/$defs/a0"},
        {
            "$defs": {f"a{n}": {"items": {"$ref": f"#/$defs/a{n + 1}"}} for n in range(3000)},
            "items": {"$ref": "#/$defs/a0"},
        },
        deep,
    ):
        assert calls(partial(refuse, schema)) < 2_000_000


def refuse(schema: Any) -> None:
    with pytest.raises(ConstraintError):
        check_shape(Schema(json.dumps(schema)))


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


@pytest.mark.parametrize(
    "pattern",
    [
        r"^[^\\]$",
        r'^[^"]$',
        r'^[^\\/:*?"<>|]$',
        r"^[^\n]$",
        r"^[\x00-!]$",
        r"^[\u0000-\u007F]$",
        r"^\W$",
        r"^[^a\[]$",
        r"^\[\^a$",
    ],
)
def test_a_set_of_characters_holds_what_it_holds(pattern: str) -> None:
    for text in ["\\", '"', "\n", "\t", "a", "!", "/", "[", "[a", "[^a"]:
        for schema, written in (
            ({"type": "string", "pattern": pattern}, json.dumps(text)),
            (
                {"type": "object", "patternProperties": {pattern: True}, "additionalProperties": False},
                json.dumps({text: 1}),
            ),
        ):
            assert takes(schema, written.replace(": ", ":")) == bool(re.search(pattern, text)), text


@pytest.mark.parametrize("divisor", ["0.01", "0.1", "0.25", "1e-7", "3", "2.5", "0.05", "1e2"])
@settings(deadline=None)
@given(count=st.integers(-(10**6), 10**6), remainder=st.sampled_from(["0", "0.001", "0.005", "0.01", "1"]))
def test_a_multiple_is_what_decimals_say_to_the_mask_and_the_reader(divisor: str, count: int, remainder: str) -> None:
    schema = json.dumps({"type": "number", "multipleOf": json.loads(divisor)})
    number = (Decimal(divisor) * count + Decimal(remainder)).normalize()
    is_multiple = number % Decimal(divisor) == 0
    assert fits(schema, f"{number:f}") == is_multiple
    assert is_multiple or not accepts(to_grammar(Schema(schema), ""), f"{number:f}")
    assert accepts(to_grammar(Schema(schema), ""), "0")


def fits(schema: str, text: str, kind: type = float) -> bool:
    try:
        value = read(Schema(schema), text)
    except ValueError:
        return False
    assert type(value) in (int, kind)
    return True


@pytest.mark.parametrize(
    ("schema", "text", "expected"),
    [
        ({"multipleOf": 0.01, "maximum": 0.07}, "0.07", True),
        ({"exclusiveMaximum": 0.07}, "0.06999999999999999999999", True),
        ({"exclusiveMaximum": 0.07}, "0.07", False),
        ({"maximum": 0.07}, "0.07000000000000000000001", False),
        ({"enum": [0.1, 0.3]}, "0.3", True),
        ({"multipleOf": 0.01}, "1e300", True),
        ({"multipleOf": 0.01}, "1e999999999", False),
        ({"multipleOf": 0.01}, "1e-999999999", False),
        ({"type": "integer"}, "1.0", True),
        ({"type": "integer"}, "1.5", False),
    ],
)
def test_numbers_are_held_against_a_schema_digit_by_digit(schema: Any, text: str, expected: bool) -> None:
    assert fits(json.dumps(schema), text) == expected


PATTERNS = [
    r"^\p{L}{2,4}$",
    r"(?<year>\d+)",
    r"^\u{1F600}?x$",
    r"^[^\"\\]*$",
    r"a|b$",
    r"^[\w-.]+$",
    r"^\S+\s\S+$",
]
TEXTS = st.text(st.sampled_from('abxé٣1 -."\\\n\t🙂😀世'), max_size=5)


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(deadline=None)
@given(text=TEXTS)
def test_a_pattern_means_the_same_when_written_and_when_read(pattern: str, text: str) -> None:
    as_value = {"type": "string", "pattern": pattern}
    as_key = {"type": "object", "patternProperties": {pattern: True}, "additionalProperties": False}
    for schema, data in ((as_value, text), (as_key, {text: 1})):
        written = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
        assert fits(json.dumps(schema), written, dict if schema is as_key else str) == takes(schema, written)


@pytest.mark.parametrize("text", ["ab", "a1"])
def test_unevaluated_properties_know_the_patterns(text: str) -> None:
    schema = {"allOf": [{"patternProperties": {r"^\p{L}+$": True}}], "unevaluatedProperties": False}
    assert fits(json.dumps(schema), json.dumps({text: 1}), dict) == text.isalpha()


@pytest.mark.parametrize("text", ["\0", "\x1f", "\x7f", "\ud800", "\u2028", "\U0010ffff"])
def test_data_that_no_answer_holds_is_held_against_a_pattern_too(text: str) -> None:
    validate(Schema('{"pattern": "^a[^b]$"}'), "a" + text)
    with pytest.raises(ValueError, match=r"pattern|match"):
        validate(Schema('{"pattern": "^a[^b]$"}'), "b" + text)


@pytest.mark.parametrize("character", ["é", "/", "\n", "\x7f", "\U0001f600", "\u2028"])
def test_data_may_be_spelled_in_every_way_and_counts_characters(character: str) -> None:
    units = character.encode("utf-16-be")
    escaped = "".join(f"\\u{int.from_bytes(units[at : at + 2]):04x}" for at in range(0, len(units), 2))
    for keyword in ({"maxLength": 1}, {"pattern": r"^[^a]$"}, {"const": character} if character != "\x7f" else {}):
        for text in (json.dumps(character), json.dumps(character, ensure_ascii=False), f'"{escaped}"'):
            assert read(Schema(json.dumps({"type": "string", **keyword})), text) == character
    if character != "\x7f":
        assert takes({"type": "string", "maxLength": 1}, json.dumps(character, ensure_ascii=False))
        assert not takes({"type": "string"}, f'"{escaped}"')


def test_patterns_that_match_the_same_names_all_count() -> None:
    schema = Schema('{"patternProperties": {"a": {"type": "integer"}, "^.$": {"maximum": 3}}}')
    validate(schema, {"a": 3})
    for value in (4, 0.5):
        with pytest.raises(ValueError, match=r"a: "):
            validate(schema, {"a": value})


@pytest.mark.parametrize("pattern", [r"(?=a)", r"\bfoo", "("])
def test_a_pattern_that_can_not_be_read_is_refused_at_once(pattern: str) -> None:
    for schema in ({"type": "string", "pattern": pattern}, {"type": "object", "patternProperties": {pattern: True}}):
        with pytest.raises(ConstraintError):
            check_shape(Schema(json.dumps(schema)))
        with pytest.raises(ValueError, match=r"."):
            validate(Schema(json.dumps(schema)), "x" if schema["type"] == "string" else {"x": 1})


UNSAYABLE = {"type": "array", "contains": {"const": 1}}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "$defs": {"a": UNSAYABLE}},
        {"type": "integer", "definitions": {"a": UNSAYABLE}},
        {"type": "integer", "$defs": {"a": {"items": {"$ref": "#/$defs/b"}}, "b": UNSAYABLE}},
        {"$ref": "#/$defs/a~1b%25", "$defs": {"a/b%": {"type": "integer"}, "c": UNSAYABLE}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"type": "integer"}, "c": UNSAYABLE}},
        {"$ref": "#/$defs/a%2Fitems", "$defs": {"a": {"items": {"type": "integer"}}, "c": UNSAYABLE}},
        {"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "integer", "$defs": {"c": UNSAYABLE}}}},
        {"allOf": [{"$defs": {"c": UNSAYABLE}, "type": "integer"}]},
    ],
    ids=json.dumps,
)
def test_definitions_that_nothing_leads_to_are_not_asked(schema: Any) -> None:
    assert takes(schema, "1")
    assert not takes(schema, "[1]")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/b"}]}, "b": UNSAYABLE}},
        {"items": {"$ref": "#/items/$defs/a", "$defs": {"a": UNSAYABLE}}},
        {"$id": "urn:a", "$ref": "urn:a#/$defs/a", "$defs": {"a": UNSAYABLE}},
        {"$ref": "#/$defs/missing", "$defs": {"a": True}},
    ],
    ids=json.dumps,
)
def test_definitions_that_something_leads_to_are(schema: Any) -> None:
    with pytest.raises(ConstraintError):
        check_shape(Schema(json.dumps(schema)))


def test_there_is_no_white_space_and_keys_keep_their_order() -> None:
    schema = {"properties": {"b": {}, "a": {}}, "required": ["a", "b"], "additionalProperties": False}
    assert takes(schema, '{"b":1,"a":2}')
    assert not takes(schema, '{"a":2,"b":1}')
    assert not takes(schema, '{"b": 1,"a":2}')
