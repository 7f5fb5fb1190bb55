"""An answer that runs out of tokens is brought to its shortest end."""

import pytest
from counting_constraint import CountingState
from shape_values import REPLY, SCALARS, STRUCTURES, TREE, fits

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.ending import shortest_end
from promptlang.grammar.shapes import Constant, Pattern, Shape, Union
from promptlang.grammar.vocabulary import Vocabulary


def end_of(shape: Shape, head: str, vocabulary: Vocabulary, limit: int = 32) -> str | None:
    state = compile_constraint(shape, vocabulary).start()
    for token in vocabulary.encode(head):
        state.advance(token)
    tokens = shortest_end(state, limit)
    if tokens is None:
        return None
    return b"".join(vocabulary.token_bytes[token] for token in tokens).decode()


@pytest.mark.parametrize(
    ("shape", "head", "end"),
    [
        (REPLY, '{"team":"a","urgency":3,"body":"Dear', '"}'),
        (TREE, '{"value":12,"children":[{"value":1,"children":[', "]}]}"),
        (Pattern("[a-y]*z"), "abc", "z"),
        (Pattern("(ab|c)*d[0-9]"), "ca", "bd0"),
        (Pattern("[a-z]+"), "abc", ""),
        (Union((Constant("new"), Constant("newer"))), "ne", "w"),
    ],
    ids=repr,
)
def test_the_end_is_short(shape: Shape, head: str, end: str, byte_level: Vocabulary) -> None:
    assert end_of(shape, head, byte_level) == end


@pytest.mark.parametrize("shape", SCALARS + STRUCTURES, ids=repr)
def test_every_type_has_an_end_from_its_start(shape: Shape, vocabulary: Vocabulary) -> None:
    text = end_of(shape, "", vocabulary, limit=64)
    assert text is not None
    assert fits(shape, text)


def test_there_is_no_end_beyond_the_limit(byte_level: Vocabulary) -> None:
    assert end_of(Pattern("[a-z]{30}"), "", byte_level, limit=8) is None
    assert end_of(Pattern("[a-z]{30}"), "", byte_level, limit=32) == "a" * 30


@pytest.mark.parametrize("shape", SCALARS + STRUCTURES, ids=repr)
def test_an_end_is_found_in_few_steps(shape: Shape, byte_level: Vocabulary) -> None:
    state = CountingState(compile_constraint(shape, byte_level).start())
    shortest_end(state, 32)
    assert state.asked["mask"] < 1000
    assert state.asked["fork"] < 1000
