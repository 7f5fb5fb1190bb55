"""Typed partial values: what is shown of an answer while its text grows."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shape_values import SCALARS, STRUCTURES, values, write

import promptlang as pl
from promptlang.api import partial
from promptlang.api.partial import ABSENT, Growing, Partial, PartialList, plain
from promptlang.grammar.reader import read
from promptlang.grammar.shapes import Constant, Field, Float, Int, List, Record, Str, Union

REPLY = Record(
    "Reply",
    (
        Field("team", Union((Constant("billing"), Constant("network")))),
        Field("urgency", Int(1, 500)),
        Field("body", Str()),
        Field("share", Float()),
        Field("tags", List(Str(), None, 3)),
    ),
)


def grown(shape: Any, text: str, cuts: list[int]) -> tuple[Growing, list[Any]]:
    """The value in the end, and as it was after each piece."""
    growing = Growing(shape)
    seen = []
    places = [0, *sorted({cut % (len(text) + 1) for cut in cuts}), len(text)]
    for start, end in pairwise(places):
        growing.feed(text[start:end])
        seen.append(plain(growing.value))
    growing.finish()
    return growing, [*seen, plain(growing.value)]


def may_become(before: Any, after: Any) -> bool:
    """Whether what was shown can have grown to what is shown now."""
    match before, after:
        case _, _ if before is ABSENT:
            return True
        case str(), str():
            return after.startswith(before)
        case list(), list():
            return len(before) <= len(after) and all(map(may_become, before, after))
        case dict(), dict():
            return list(after)[: len(before)] == list(before) and all(
                may_become(before[key], after[key]) for key in before
            )
    return type(before) is type(after) and before == after


@settings(deadline=None)
@given(st.data())
def test_an_answer_grows_to_what_the_reader_reads(data: st.DataObject) -> None:
    shape = data.draw(st.sampled_from([*SCALARS, *STRUCTURES, REPLY]))
    text = write(shape, data.draw(values(shape)))
    growing, seen = grown(shape, text, data.draw(st.lists(st.integers(0, 500), max_size=12)))
    assert growing.state == "whole"
    assert seen[-1] == read(shape, text)
    assert all(may_become(before, after) for before, after in pairwise(seen))


def test_each_part_says_its_state() -> None:
    growing = Growing(REPLY)
    growing.feed('{"team":"bill')
    reply = growing.value
    assert isinstance(reply, Partial)
    assert (growing.state, reply.state_of("team"), reply.state_of("body")) == ("growing", "absent", "absent")
    growing.feed('ing","urgency":12')
    assert (reply.team, reply.state_of("urgency"), reply.urgency) == ("billing", "absent", ABSENT)
    growing.feed('3,"body":"It is')
    assert (reply.urgency, reply.body, reply.state_of("body")) == (123, "It is", "growing")
    growing.feed(' late.","share":1')
    assert (reply.state_of("body"), list(reply)) == ("whole", ["team", "urgency", "body"])
    growing.feed(',"tags":["a","b')
    assert isinstance(reply.tags, PartialList)
    assert (reply.share, list(reply.tags), type(reply.share)) == (1.0, ["a", "b"], float)
    assert dict(plain(reply))["tags"] == ["a", "b"]


@pytest.mark.parametrize("text", ["é", "🙂", '"', "\\", "\n", "a🙂b"])
def test_no_half_character_is_shown(text: str) -> None:
    written = json.dumps([text, "end"])
    growing = Growing(List(Str()))
    for char in written:
        growing.feed(char)
        shown = "".join(map(str, plain(growing.value)))
        assert (text + "end").startswith(shown)
    assert plain(growing.value) == [text, "end"]


def test_the_work_grows_with_the_text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    steps = 0

    class Counting(partial._Parser):
        def _outside(self, char: str, place: int) -> int:
            nonlocal steps
            steps += 1
            return super()._outside(char, place)

        def _in_text(self, text: str, place: int) -> int:
            nonlocal steps
            steps += 1
            return super()._in_text(text, place)

    monkeypatch.setattr(partial, "_Parser", Counting)
    text = json.dumps([{"a": "word " * 10, "b": number} for number in range(1500)])
    growing = Growing(List(Record("Item", (Field("a", Str()), Field("b", Int())))))
    for char in text:
        growing.feed(char)
        assert len(growing.value) <= 1500
    assert steps <= 2 * len(text)


def test_events_of_an_answer_carry_what_is_there_of_it() -> None:
    program = pl.compile(
        'record Reply:\n    team: "billing" | "network"\n    body: str\n\n'
        'program main():\n    "A"\n    x = gen(Reply, max_tokens=60)\n    return x\n'
    )
    text = '{"team":"network","body":"late"}'
    with pl.testing.answers([text]), program.stream() as run:
        partials = [plain(event.partial) for event in run if isinstance(event, pl.events.Answer)]
    assert partials[-1] == {"team": "network", "body": "late"}
