"""Runs as they happen."""

import asyncio
import threading

import pytest

import promptlang as pl
from promptlang.api.events import (
    Adopted,
    Answer,
    Answered,
    Done,
    Ended,
    Event,
    Log,
    Opened,
    Pruned,
    Retried,
    Text,
    Variable,
)

TEXT = """
program main(word: str):
    system: "Say ${word}."
    user: "Now."
    assistant: x = gen(max_tokens=4, temperature=1)
    fork 2 as tries:
        user: "More."
        assistant: y = gen(int in 0..9, temperature=2)
        keep 1 by y
    adopt tries[0]
    other = helper(word)
    log other
    return other

program helper(word: str):
    "Help ${word}"
    z = gen(max_tokens=2)
    return z
"""


@pl.program
def talk(p: pl.Prompt, word: str) -> str:
    p.user(word)
    with p.assistant():
        x = p.gen(max_tokens=4)

    def branch(b: pl.Branch) -> int:
        b.text("more")
        b.keep(1, by=b.index)
        return b.index

    p.adopt(p.fork(2, branch, name="tries")[0])
    for attempt in p.attempts(1):
        with attempt:
            attempt.require(attempt.number == 1, "again")
    p.log("end")
    return x


@pl.program
def endless(p: pl.Prompt) -> None:
    p.text("a")
    while True:
        p.gen(max_tokens=20)


def test_events_tell_who_said_what_where() -> None:
    with pl.compile(TEXT).stream(word="fox") as run:
        events = list(run)
    said = [(event.path, event.role, event.text) for event in events if isinstance(event, Text)]
    assert said[:2] == [((), "system", "Say fox."), ((), "user", "Now.")]
    assert (("tries",), "user", "More.") in said, "what both branches begin with is said once"
    assert (("helper()",), None, "Help fox") in said
    assert all(
        event.role == "assistant" for event in events if isinstance(event, Answer) and event.path[:1] != ("helper()",)
    )
    assert {event.path for event in events if isinstance(event, Opened)} == {
        ("tries[0]",),
        ("tries[1]",),
        ("helper()",),
    }
    kept = [event.path for event in events if isinstance(event, Ended)]
    pruned = [event.path for event in events if isinstance(event, Pruned)]
    assert len(kept) == 3, "with what the branches begin with"
    assert len(pruned) == 1
    named = {event.name: event.value for event in events if isinstance(event, Variable) and event.path == ()}
    assert named["other"] == run.result
    assert events[-1] == Done((), run.result)
    assert [event.text for event in events if isinstance(event, Log)] == [run.result]


def test_pieces_make_the_answer() -> None:
    outcome = talk.run("fox")
    pieces = [event.text for event in outcome.trace if isinstance(event, Answer)]
    assert "".join(pieces) == outcome.result
    kinds = [type(event) for event in outcome.trace]
    assert kinds.count(Answered) == 1
    assert [event.why for event in outcome.trace if isinstance(event, Retried)] == ["again"]
    assert [event.index for event in outcome.trace if isinstance(event, Adopted)] == [1]


def test_leaving_a_stream_early_ends_its_run(engine: pl.Engine) -> None:
    with endless.stream() as run:
        for event in run:
            if isinstance(event, Answered):
                break
    with pytest.raises(pl.Cancelled):
        _ = run.result
    assert talk("fox") == talk("fox")


def test_another_thread_may_cancel() -> None:
    with endless.stream() as run:
        threading.Timer(0.1, run.cancel).start()
        with pytest.raises(pl.Cancelled):
            list(run)


def test_what_a_function_raises_comes_out_of_its_stream() -> None:
    @pl.program
    def fail(p: pl.Prompt) -> None:
        p.text("a")
        raise LookupError("mine")

    with fail.stream() as run, pytest.raises(LookupError, match="mine"):
        list(run)


def test_a_stream_in_an_event_loop() -> None:
    async def main() -> tuple[list[Event], str]:
        async with talk.astream("fox") as run:
            events = [event async for event in run]
            return events, await run.result()

    events, result = asyncio.run(main())
    assert events[-1] == Done((), result)
    assert result == talk("fox")
