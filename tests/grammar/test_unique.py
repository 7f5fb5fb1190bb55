"""Arrays without repetition: what a mask lets through is exactly what validates, and never leads where nothing ends."""

import json
import random
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from promptlang.grammar.acceptor import bytes_vocabulary
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import State
from promptlang.grammar.ending import shortest_end
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.shapes import Dict, Field, List, Null, Record, Recursive, Schema, Shape, Str, Union
from promptlang.grammar.vocabulary import Vocabulary, allows


def schema(**keywords: Any) -> Schema:
    return Schema(json.dumps({"type": "array", "uniqueItems": True, **keywords}))


def state_after(
    shape: Shape, text: str, vocabulary: Vocabulary, prefix: str = "", pretty: bool = False
) -> State | None:
    """Where an answer stands, token by token as the tokenizer has them; None where a mask lacks one."""
    state = compile_constraint(shape, vocabulary, prefix=prefix, pretty=pretty).start()
    for token in vocabulary.encode(prefix + text):
        if not allows(state.mask(), token):
            return None
        state.advance(token)
    return state


def takes(shape: Shape, text: str, vocabulary: Vocabulary) -> bool:
    state = state_after(shape, text, vocabulary)
    return state is not None and state.can_end()


@pytest.mark.parametrize(
    ("items", "good", "bad"),
    [
        ({"type": "string"}, ['["a","ab","b"]', "[]", '["",":"]', '["\\"a","a"]'], ['["a","b","a"]', '["",""]']),
        ({"type": "integer"}, ["[1,11,111]", "[0,-1]"], ["[1,2,1]", "[0,-0]", "[11,1,11]"]),
        ({"enum": [*range(20)]}, [json.dumps([*range(20)]).replace(" ", "")], ["[1,1]", "[10,1,10]"]),
        ({"type": ["integer", "boolean", "null"]}, ["[1,true,0,false,null]"], ["[true,1,true]", "[null,null]"]),
        ({"type": "number"}, ["[1e-99999999999999999999,1e99999999999999999999]"], ["[1e2,100.0]", "[0.0,-0e5]"]),
        ({}, ['[1,true,"1",[1],{"a":1}]'], ["[1,1.0]", "[[1],[1e0]]", '[{"a":1,"b":2},{"b":2,"a":1}]']),
        ({"items": {}, "type": "array"}, ["[[1,1],[1]]"], ["[[1],[1]]", "[[],[]]"]),
        (
            {"properties": {"a": {"type": "string"}}, "additionalProperties": False, "type": "object"},
            ['[{"a":"x,y"},{"a":"x"},{}]'],
            ['[{"a":"x]"},{"a":"x]"}]', "[{},{}]"],
        ),
    ],
    ids=str,
)
def test_an_array_holds_no_value_twice(items: Any, good: list[str], bad: list[str], vocabulary: Vocabulary) -> None:
    for text in good:
        assert takes(schema(items=items), text, vocabulary), text
    for text in bad:
        assert not takes(schema(items=items), text, vocabulary), text


ITEMS: list[Any] = [
    {"type": "string", "pattern": "^[ab]{1,2}$"},
    {"type": "string", "maxLength": 1},
    {"enum": ["alpha", "albedo", "al", "beta", "gamma", "gammon"]},
    {"type": "integer", "minimum": 0, "maximum": 11},
    {"type": "integer", "minimum": -1, "maximum": 1},
    {"type": "array", "items": {"enum": [1, 2]}, "maxItems": 2},
    {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}}, "required": ["a"]}
    | {"additionalProperties": False},
    {"anyOf": [{"const": "only"}, {"type": "integer", "minimum": 5, "maximum": 7}]},
]


@pytest.mark.parametrize("items", ITEMS, ids=json.dumps)
@pytest.mark.parametrize("pretty", [False, True])
def test_whatever_way_is_taken_there_is_an_end_and_no_repetition(
    items: Any, pretty: bool, vocabulary: Vocabulary
) -> None:
    shape = schema(items=items)
    validator = Draft202012Validator(json.loads(shape.text))
    for seed in range(6):
        source, taken = random.Random(seed), b""
        state = compile_constraint(shape, vocabulary, pretty=pretty).start()
        for _ in range(30):
            if state.is_done():
                break
            choices = vocabulary.tokens_of(state.mask())
            onward = [token for token in choices if b"]" not in vocabulary.token_bytes[token]]
            token = source.choice(onward or choices)
            state.advance(token)
            taken += vocabulary.token_bytes[token]
        end = shortest_end(state, 64) or []
        text = (taken + b"".join(vocabulary.token_bytes[token] for token in end)).decode()
        validator.validate(json.loads(text))


@pytest.mark.parametrize("items", [{"enum": list("abcdefgh")}, {"type": "string", "pattern": "^[a-h]$"}])
def test_an_array_of_all_values_has_no_other(items: Any, vocabulary: Vocabulary) -> None:
    whole = '["a","b","c","d","e","f","g","h"'
    assert takes(schema(items=items), whole + "]", vocabulary)
    for text in (whole + ",", whole + ',"'):
        assert state_after(schema(items=items), text, bytes_vocabulary()) is None


def test_where_one_more_must_come_and_none_is_left_it_is_said() -> None:
    items = {"type": "string", "pattern": "^[ab]$"}
    with pytest.raises(ConstraintError, match="uniqueItems"):
        state_after(schema(items=items, minItems=3), '["a","b"', bytes_vocabulary()).mask()  # type: ignore[union-attr]
    with pytest.raises(ConstraintError):
        compile_constraint(schema(items={"enum": list("abcdefgh")}, minItems=9, maxItems=9), bytes_vocabulary())


PLACES: Any = {
    "properties": {"x": {"$ref": "#/$defs/some"}, "y": {"type": "array"}, "next": {"$ref": "#"}},
    "patternProperties": {"^p": {"$ref": "#/$defs/some"}},
    "additionalProperties": {"anyOf": [{"type": "null"}, {"allOf": [{"$ref": "#/$defs/some"}]}]},
    "$defs": {"some": {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"x":[1,2],"y":[1,1]}', True),
        ('{"x":[1,1]}', False),
        ('{"y":[[1,1],[1,1]]}', True),
        ('{"next":{"x":[1,2],"next":{"y":[1,1]}}}', True),
        ('{"next":{"x":[1,2],"next":{"x":[1,1]}}}', False),
        ('{"pq":[1,1]}', False),
        ('{"other":[1,1]}', False),
        ('{"other":[1,2],"o":null}', True),
    ],
)
def test_the_arrays_that_are_meant_are_found_by_their_places(text: str, expected: bool, vocabulary: Vocabulary) -> None:
    shape = Schema(json.dumps(PLACES))
    assert takes(shape, text, vocabulary) == expected
    around = Record("R", (Field("s", Union((shape, Null()))), Field("r", Union((Recursive("R"), Null())))))
    assert takes(around, f'{{"s":{text},"r":{{"s":{text},"r":null}}}}', vocabulary) == expected
    assert takes(around, f'{{"s":null,"r":{{"s":{text},"r":null}}}}', vocabulary) == expected
    assert takes(List(Dict(shape)), f'[{{"k":{text}}},{{"k":{text}}}]', vocabulary) == expected


def test_text_beside_a_schema_is_none_of_its_arrays(vocabulary: Vocabulary) -> None:
    shape = Union((schema(), Str()))
    with pytest.raises(ConstraintError):
        compile_constraint(shape, vocabulary)
    shape = Union((schema(), Null()))
    assert takes(shape, "none", vocabulary)
    assert not takes(shape, "[1,1]", vocabulary)


@pytest.mark.parametrize("prefix", [" ", '["a"', "x: "])
def test_what_comes_before_a_value_is_not_read(prefix: str, vocabulary: Vocabulary) -> None:
    good = state_after(schema(), '["a","b"]', vocabulary, prefix)
    assert good is not None
    assert good.can_end()
    assert state_after(schema(), '["a","a"]', vocabulary, prefix) is None


def test_a_state_goes_back_and_is_copied(byte_level: Vocabulary) -> None:
    state = state_after(schema(items={"type": "string"}), '["a","b"', byte_level)
    assert state is not None
    copy, before = state.fork(), state.mask().tobytes()
    tokens = byte_level.encode(',"c","d"')
    for token in tokens:
        state.advance(token)
    assert copy.mask().tobytes() == before
    state.rollback(len(tokens))
    assert state.mask().tobytes() == before
    for token in byte_level.encode(',"a'):
        state.advance(token)
    with pytest.raises(ValueError, match="allowed"):
        state.advance(byte_level.by_bytes[b'"'][0])


def test_what_is_forced_is_no_repetition() -> None:
    vocabulary = bytes_vocabulary()
    state = state_after(schema(items={"type": "string", "pattern": "^(abc|abd)$"}), '["abc",', vocabulary)
    assert state is not None
    for token in state.forced():
        state.advance(token)
    while not state.can_end():
        state.advance(vocabulary.tokens_of(state.mask())[0])
    assert state.is_done()
