"""Random answers: of every shape, and readable."""

from random import Random

import pytest
from shape_values import SCALARS, STRUCTURES

from promptlang.api.random_answers import random_text
from promptlang.grammar.reader import read
from promptlang.grammar.shapes import ContextFree, Float, Int, List, Pattern, Schema, Shape, Union

OTHERS: list[Shape] = [
    Int(5, None),
    Int(None, -5),
    Float(0.001, 0.002),
    List(Pattern("[a-z]{2}")),
    Union((ContextFree('start: "a"+ "," /[0-9]{1,3}/'), Int(0, 9))),
    Schema('{"type":"string","format":"date"}'),
    Schema('{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],"additionalProperties":false}'),
    Schema('{"type":"array","items":{"enum":[1,2,3]},"uniqueItems":true,"minItems":2}'),
]


@pytest.mark.parametrize("shape", [*SCALARS, *STRUCTURES, *OTHERS], ids=repr)
def test_every_random_text_is_an_answer(shape: Shape) -> None:
    for seed in range(10):
        read(shape, random_text(shape, Random(seed)))


def test_a_seed_gives_its_texts() -> None:
    texts = [[random_text(shape, Random(seed)) for shape in STRUCTURES] for seed in (1, 1, 2)]
    assert texts[0] == texts[1] != texts[2]
