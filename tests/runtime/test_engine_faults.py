"""What fails in a step fails what it carried, and nothing else."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from tiny_engine import prompt_of, tiny_engine

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.shapes import Bool
from promptlang.runtime import choosing as choosing_module
from promptlang.runtime import engine as engine_module
from promptlang.runtime.engine import CacheFault, Engine
from promptlang.runtime.generation import GenerateJob
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import (
    Answer,
    GeneratedTokens,
    GenerateTokens,
    PassError,
    RequestError,
    ScoredOptions,
    ScoreOptions,
    WatcherError,
)
from promptlang.runtime.scoring import ScoreJob
from promptlang.runtime.usage import Usage

FOX = "The quick brown fox jumps over the lazy dog. "
OPTIONS = (FOX * 2 + "one", FOX * 2 + "two", "a dog", "a dog that barks at the fox")


def write(engine: Engine, text: str, **options: Any) -> Answer:
    return engine.submit(
        GenerateTokens(prompt_of(engine, text), RandomStream(0, text), Usage(), max_tokens=6, **options)
    )


def score(engine: Engine, text: str) -> Answer:
    options = tuple(tuple(engine.tokenizer.encode(option)) for option in OPTIONS)
    return engine.submit(ScoreOptions(prompt_of(engine, text), options, Usage()))


def ask_all(engine: Engine) -> list[Answer]:
    return [write(engine, FOX), score(engine, FOX * 2), write(engine, FOX * 3), score(engine, "the dog")]


def finish(engine: Engine) -> None:
    while engine.step():
        pass
    engine.check()


def said(answer: Answer) -> object:
    assert answer.error is None, answer.error
    if isinstance(answer.result, GeneratedTokens):
        return answer.result.tokens
    assert isinstance(answer.result, ScoredOptions)
    return [None if one is None else one.tolist() for one in answer.result.logprobs]


def same(answer: Answer, expected: object) -> bool:
    found = said(answer)
    if isinstance(answer.result, GeneratedTokens):
        return found == expected
    return all(np.allclose(one, other, atol=1e-5) for one, other in zip(found, expected, strict=True))  # type: ignore[call-overload]


@pytest.fixture(scope="module")
def alone() -> list[object]:
    """What each of `ask_all` gives on an engine that nothing happens to."""
    engine = tiny_engine(tokens_a_step=64)
    answers = ask_all(engine)
    finish(engine)
    return [said(answer) for answer in answers]


@contextmanager
def failing(owner: Any, name: str, at: int, error: BaseException) -> Iterator[list[int]]:
    """Lets the call number `at` of a function raise; gives the number of calls there were."""
    real: Callable[..., Any] = getattr(owner, name)
    calls = [0]

    def fails(*arguments: Any, **options: Any) -> Any:
        calls[0] += 1
        if calls[0] == at:
            raise error
        return real(*arguments, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, fails)
        yield calls


PASSES = 16
"""More than the requests of `ask_all` need."""


@pytest.mark.parametrize("at", range(1, PASSES))
def test_a_pass_that_fails_fails_what_it_carried_alone(alone: list[object], at: int) -> None:
    engine = tiny_engine(tokens_a_step=64)
    answers = ask_all(engine)
    with failing(engine.model, "forward", at, RuntimeError("out of memory\nat some place")) as passes:
        finish(engine)
    assert passes[0] < PASSES - 1 or at <= passes[0]
    failed = [answer.error for answer in answers if answer.error is not None]
    assert bool(failed) == (at <= passes[0])
    for error in failed:
        assert isinstance(error, PassError)
        assert str(error) == (
            "the model pass failed: RuntimeError: out of memory; a smaller --kv-budget leaves more memory"
        )
    assert all(same(answer, one) for answer, one in zip(answers, alone, strict=True) if answer.error is None)
    again = ask_all(engine)
    finish(engine)
    assert all(same(answer, one) for answer, one in zip(again, alone, strict=True))


def test_requests_outside_a_failing_pass_go_on(alone: list[object]) -> None:
    engine = tiny_engine(answers_at_once=2, tokens_a_step=64)
    answers = ask_all(engine)
    with failing(engine.model, "forward", 2, RuntimeError("no")):
        finish(engine)
    failed = [answer.error is not None for answer in answers]
    assert 0 < sum(failed) < len(failed)
    assert all(same(answer, one) for answer, one in zip(answers, alone, strict=True) if answer.error is None)


@pytest.mark.parametrize("at", range(1, PASSES))
def test_an_interrupted_pass_is_made_again(alone: list[object], at: int) -> None:
    engine = tiny_engine(tokens_a_step=64)
    answers = ask_all(engine)
    interrupts = 0
    with failing(engine.model, "forward", at, KeyboardInterrupt()):
        try:
            finish(engine)
        except KeyboardInterrupt:
            interrupts += 1
            finish(engine)
    assert interrupts or at > 1
    assert all(same(answer, one) for answer, one in zip(answers, alone, strict=True))


@pytest.mark.parametrize("name", ["sample", "few_allowed", "logprob_of"])
@pytest.mark.parametrize("at", [1, 2, 5])
def test_sampling_that_fails_fails_its_answer_alone(alone: list[object], name: str, at: int) -> None:
    engine = tiny_engine(tokens_a_step=64)
    wants = {"wants_logprobs": True} if name == "logprob_of" else {}
    answers = [write(engine, FOX, **wants), write(engine, FOX * 3, **wants)]
    module = choosing_module if name == "few_allowed" else engine_module
    with failing(module, name, at, IndexError("no such token")):
        finish(engine)
    (failed,) = [answer for answer in answers if answer.error is not None]
    assert isinstance(failed.error, PassError)
    assert "IndexError: no such token" in str(failed.error)
    (other,) = [answer for answer in answers if answer is not failed]
    assert same(other, alone[0] if other is answers[0] else alone[2])


@pytest.mark.parametrize("at", range(1, 8))
def test_logits_that_cannot_be_read_fail_who_wants_them(alone: list[object], at: int) -> None:
    engine = tiny_engine(tokens_a_step=64)
    answers = ask_all(engine)
    with failing(engine_module.TimedLogits, "rows", at, RuntimeError("no")):
        finish(engine)
    assert any(answer.error is not None for answer in answers)
    assert all(same(answer, one) for answer, one in zip(answers, alone, strict=True) if answer.error is None)


@pytest.mark.parametrize("error", [RuntimeError("no"), KeyboardInterrupt()])
@pytest.mark.parametrize("at", [1, 2, 3])
def test_scores_that_cannot_be_taken_fail_their_answer_alone(
    alone: list[object], at: int, error: BaseException
) -> None:
    engine = tiny_engine(tokens_a_step=64)
    answers = ask_all(engine)
    with failing(ScoreJob, "accept", at, error):
        try:
            finish(engine)
        except KeyboardInterrupt:
            finish(engine)
    (failed,) = [answer for answer in answers if answer.error is not None]
    assert isinstance(failed.request, ScoreOptions)
    assert all(same(answer, one) for answer, one in zip(answers, alone, strict=True) if answer is not failed)


@pytest.mark.parametrize("name", ["mask", "advance", "can_end"])
def test_a_constraint_that_fails_fails_its_answer_alone(alone: list[object], name: str) -> None:
    engine = tiny_engine(tokens_a_step=64)
    constraint = compile_constraint(Bool(), engine.vocabulary)
    with failing(type(constraint.start()), name, 1, KeyError("state 7")):
        doomed = write(engine, FOX, constraint=constraint)
        other = write(engine, FOX * 3)
        finish(engine)
    assert isinstance(doomed.error, PassError)
    assert "state 7" in str(doomed.error)
    assert same(other, alone[2])


@pytest.mark.parametrize("moment", ["on_text", "on_done"])
def test_a_watcher_that_fails_fails_its_answer_alone(alone: list[object], moment: str) -> None:
    engine = tiny_engine(tokens_a_step=64)

    def fails(*_: object) -> None:
        raise ValueError("the window is closed")

    doomed = write(engine, FOX, on_text=fails) if moment == "on_text" else write(engine, FOX)
    if moment == "on_done":
        doomed.on_done = fails
    other = write(engine, FOX * 3)
    finish(engine)
    assert isinstance(doomed.error, WatcherError)
    assert isinstance(doomed.error.__cause__, ValueError)
    assert "the window is closed" in str(doomed.error)
    assert doomed.result is None
    assert same(other, alone[2])


def test_an_interrupt_in_a_watcher_passes_and_the_others_go_on(alone: list[object]) -> None:
    engine = tiny_engine(tokens_a_step=64)

    def interrupts(text: str) -> None:
        raise KeyboardInterrupt

    doomed = write(engine, FOX, on_text=interrupts)
    others = [score(engine, FOX * 2), write(engine, FOX * 3)]
    with pytest.raises(KeyboardInterrupt):
        finish(engine)
    assert isinstance(doomed.error, RequestError)
    assert "interrupted" in str(doomed.error)
    finish(engine)
    assert all(same(answer, one) for answer, one in zip(others, alone[1:], strict=False))


@pytest.mark.parametrize("name", ["next_work", "computed"])
def test_an_engine_that_lost_count_fails_what_is_under_way_and_refuses_the_rest(name: str) -> None:
    engine = tiny_engine(answers_at_once=2)
    answers = ask_all(engine)
    engine.step()
    owner = type(engine._scheduler) if name == "next_work" else ScoreJob
    with failing(owner, name, 1, AssertionError("a slot in two places")):
        while engine.step():
            pass
    assert all(isinstance(answer.error, CacheFault) for answer in answers)
    assert not engine.step()
    with pytest.raises(CacheFault, match="a slot in two places"):
        write(engine, FOX)


def test_an_interrupt_that_met_the_cache_half_way_passes_and_the_engine_says_so() -> None:
    engine = tiny_engine()
    answers = ask_all(engine)
    with (
        failing(engine.model, "forward", 2, KeyboardInterrupt()),
        failing(GenerateJob, "release", 1, ValueError("no")),
        pytest.raises(KeyboardInterrupt),
    ):
        finish(engine)
    assert all(isinstance(answer.error, CacheFault) for answer in answers if answer.result is None)
    assert not engine.step()
    with pytest.raises(CacheFault):
        write(engine, FOX)


@pytest.mark.parametrize("at", range(1, 12))
@pytest.mark.parametrize("kind", [GenerateJob, ScoreJob])
def test_an_interrupt_between_plan_and_pass_forgets_the_plan(alone: list[object], kind: type, at: int) -> None:
    engine = tiny_engine(tokens_a_step=64)
    answers = ask_all(engine)
    real, calls = kind.next_lanes, [0]

    def next_lanes(job: Any, budget: int) -> object:
        lanes = real(job, budget)
        calls[0] += 1
        if calls[0] == at:
            raise KeyboardInterrupt
        return lanes

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "next_lanes", next_lanes)
        try:
            finish(engine)
        except KeyboardInterrupt:
            finish(engine)
    assert all(same(answer, one) for answer, one in zip(answers, alone, strict=True))
