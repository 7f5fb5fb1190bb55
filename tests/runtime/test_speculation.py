"""Drafts change how many passes it takes, and nothing else."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_engine import kv_bytes, prompt_of, tiny_engine, tiny_loaded

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.shapes import Field, Int, Pattern, Record, Shape, Str
from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.guessing import Guesser
from promptlang.runtime.models.batch import Batch
from promptlang.runtime.models.logits import Logits
from promptlang.runtime.models.model import Model
from promptlang.runtime.models.pass_costs import PassCosts
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GeneratedTokens, GenerateTokens
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.usage import Usage

FREE = PassCosts((1, 32), (1.0, 1.0))
"""A model for which further rows cost nothing."""

DEAR = PassCosts((1, 32), (1.0, 32.0))
"""A model for which each row costs what the first does."""

SHAPES: tuple[Shape | None, ...] = (
    None,
    None,
    Int(),
    Pattern("(ab|abc|x ){2,30}"),
    Record("Reply", (Field("name", Str()), Field("age", Int(0, 120)))),
)

TEXTS = (
    "one two three one two three one two",
    "the same the same the same the",
    "Repeat: to be or not to be, that is the question.\nTo be or not to be,",
    "nothing in common",
)


@dataclass(frozen=True)
class Asked:
    """What is asked of the model."""

    text: str
    seed: int
    temperature: float
    max_tokens: int
    shape: Shape | None = None
    stop: tuple[str, ...] = ()
    wants_logprobs: bool = False
    min_tokens: int = 0
    penalty: float = 1.0


asked = st.builds(
    Asked,
    text=st.sampled_from(TEXTS),
    seed=st.integers(0, 1),
    temperature=st.sampled_from([0.0, 0.0, 0.3, 1.0]),
    max_tokens=st.integers(1, 40),
    shape=st.sampled_from(SHAPES),
    stop=st.sampled_from([(), ("e",), ("th", "ab")]),
    wants_logprobs=st.booleans(),
    min_tokens=st.integers(0, 3),
    penalty=st.sampled_from([1.0, 1.0, 1.3]),
)


def answers(engine: Engine, rounds: Sequence[Sequence[Asked]]) -> tuple[list[GeneratedTokens], Usage]:
    """What comes of some rounds, in each of which all is asked at once."""
    usage, results = Usage(), []
    for round_ in rounds:
        waiting = [engine.submit(request_of(engine, asked, usage)) for asked in round_]
        while engine.step():
            pass
        engine.check()
        for answer in waiting:
            assert answer.result is not None, answer.error
            results.append(answer.result)
    return results, usage


def request_of(engine: Engine, asked: Asked, usage: Usage) -> GenerateTokens:
    return GenerateTokens(
        prompt_of(engine, asked.text),
        RandomStream(asked.seed),
        usage,
        sampling=Sampling(asked.temperature, repetition_penalty=asked.penalty),
        max_tokens=asked.max_tokens,
        min_tokens=asked.min_tokens,
        constraint=compile_constraint(asked.shape, engine.vocabulary) if asked.shape else None,
        stop=asked.stop,
        wants_logprobs=asked.wants_logprobs,
    )


def assert_alike(some: Sequence[GeneratedTokens], others: Sequence[GeneratedTokens]) -> None:
    for one, other in zip(some, others, strict=True):
        assert (one.tokens, one.text, one.finish, one.is_whole) == (
            other.tokens, other.text, other.finish, other.is_whole,
        )  # fmt: skip
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


CHEAP = PassCosts((1, 32), (0.01, 0.01))


def engine_of(seed: int | None, tokens: int = 4096, drafting: PassCosts = CHEAP, **options: object) -> Engine:
    """An engine that drafts whatever it can.

    Args:
        seed: of a model that writes ahead; 0 is the right one itself, None is without.
        drafting: costs of that.
        tokens: of its pool.
        options: more of `EngineOptions`.
    """
    loaded = tiny_loaded()
    if seed is not None:
        model = copy(loaded.model)
        model.drafting = tiny_loaded(seed).model  # type: ignore[misc]
        loaded = replace(loaded, model=model)
    return Engine(
        loaded,
        EngineOptions(
            kv_bytes=kv_bytes(tokens),
            pass_costs=FREE,
            drafting_costs=drafting,
            **options,  # type: ignore[arg-type]
        ),
    )


@settings(deadline=None)
@given(
    drafting=st.sampled_from([None, 0, 1]),
    rounds=st.lists(st.lists(asked, min_size=1, max_size=4), min_size=1, max_size=3),
    pool=st.sampled_from([160, 4096]),
    budget=st.sampled_from([8, 512]),
    shares=st.booleans(),
)
def test_answers_are_the_same_token_for_token(
    drafting: int | None, rounds: list[list[Asked]], pool: int, budget: int, shares: bool
) -> None:
    plain, plain_usage = answers(tiny_engine(pool, tokens_a_step=budget, shares=shares), rounds)
    quick, quick_usage = answers(engine_of(drafting, pool, tokens_a_step=budget, shares=shares), rounds)
    assert_alike(plain, quick)
    for name in ("requested_tokens", "generated_tokens", "forced_tokens", "calls", "cut_answers", "overruled_answers"):
        assert getattr(plain_usage, name) == getattr(quick_usage, name)
    assert plain_usage.drafted_tokens == plain_usage.accepted_tokens == 0
    assert 0 <= quick_usage.accepted_tokens <= quick_usage.drafted_tokens
    assert quick_usage.forwards <= plain_usage.forwards


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_an_answer_that_was_given_before_takes_few_passes(temperature: float) -> None:
    twice = [[Asked(TEXTS[1], 5, temperature, 60, min_tokens=60)]] * 2
    plain, plain_usage = answers(tiny_engine(), twice)
    quick, usage = answers(tiny_engine(pass_costs=FREE), twice)
    assert_alike(plain, quick)
    assert usage.accepted_tokens > 0.4 * usage.generated_tokens > 20
    assert usage.forwards + usage.accepted_tokens == plain_usage.forwards


def test_a_typed_answer_that_was_given_before_takes_few_passes() -> None:
    twice = [[Asked(TEXTS[3], 5, 1.0, 100, SHAPES[-1])]] * 2
    plain, plain_usage = answers(tiny_engine(), twice)
    quick, usage = answers(tiny_engine(pass_costs=FREE), twice)
    assert_alike(plain, quick)
    assert usage.forwards < 0.75 * plain_usage.forwards


@pytest.mark.parametrize("shape", [None, *SHAPES[2:]])
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_what_the_right_model_writes_ahead_holds(shape: Shape | None, temperature: float) -> None:
    """Its tokens are drawn under the same constraint and with the same noise."""
    rounds = [[Asked(TEXTS[3], seed, temperature, 40, shape, penalty=1.2, min_tokens=20) for seed in range(2)]]
    plain, plain_usage = answers(tiny_engine(), rounds)
    quick, usage = answers(engine_of(0, shares=False), rounds)
    assert_alike(plain, quick)
    assert usage.forwards < max(4, 0.6 * plain_usage.forwards)


def test_a_model_that_writes_ahead_in_vain_is_soon_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One with other weights, whose passes are no bargain."""
    passes: list[int] = []
    monkeypatch.setattr(Guesser, "write", spying(Guesser.write, passes))
    engine = engine_of(1, shares=False, drafting=PassCosts((1, 32), (0.4, 0.4)))
    answers(engine, [[Asked(TEXTS[3], 5, 1.0, 300, min_tokens=300)]])
    assert 0 < 0.4 * sum(passes) < 0.1 * 300


def spying(write: Callable[..., list[list[int]]], passes: list[int]) -> Callable[..., list[list[int]]]:
    """Note how many passes are asked for."""

    def spy(guesser: Guesser, writing: object, count: int) -> list[list[int]]:
        passes.append(count)
        return write(guesser, writing, count)

    return spy


def test_a_drafting_model_that_fails_fails_what_it_wrote_for_alone() -> None:
    engine = engine_of(0)
    usage = Usage()
    answer = engine.submit(request_of(engine, Asked(TEXTS[0], 5, 0.0, 20), usage))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Guesser, "write", lambda *_: 1 / 0)
        while engine.step():
            pass
    assert "ZeroDivisionError" in str(answer.error)
    engine.check()
    again, _ = answers(engine, [[Asked(TEXTS[0], 5, 0.0, 20)]])
    assert_alike(again, answers(tiny_engine(), [[Asked(TEXTS[0], 5, 0.0, 20)]])[0])


def test_where_rows_are_dear_nothing_is_drafted() -> None:
    _, usage = answers(tiny_engine(pass_costs=DEAR), [[Asked(TEXTS[0], 5, 0.0, 40)]] * 3)
    assert usage.drafted_tokens == 0


def test_where_nothing_holds_drafts_cost_less_than_a_fiftieth() -> None:
    """At a high temperature, the tiny model writes at random."""
    rounds = [[Asked(TEXTS[0], seed, 50.0, 200, min_tokens=200)] for seed in range(4)]
    costs = PassCosts()
    _, usage = answers(tiny_engine(pass_costs=costs), rounds)
    first, second = costs.of(np.array([1, 2]))
    assert usage.accepted_tokens < 0.02 * usage.generated_tokens
    assert 0 < usage.drafted_tokens * (second / first - 1) < 0.02 * usage.generated_tokens


def test_an_answer_is_no_draft_for_another_namespace() -> None:
    def forwards(*namespaces: str) -> int:
        engine, usage = tiny_engine(pass_costs=FREE), Usage()
        for namespace in namespaces:
            prompt = engine.new_prompt((namespace,))
            prompt.add(TEXTS[3])
            engine.submit(GenerateTokens(prompt, RandomStream(5), usage, sampling=Sampling(1.0), max_tokens=60))
            while engine.step():
                pass
        return usage.forwards

    assert forwards("mine", "mine") < forwards("mine", "yours") == 2 * forwards("mine")


def test_a_draft_takes_no_cached_slot() -> None:
    """Where the pool is full but for what the answer needs, nothing is evicted for a guess."""
    rounds = [[Asked(text, 5, 0.0, 40)] for text in (*TEXTS, *TEXTS)]
    engine, plain = tiny_engine(140, pass_costs=FREE), tiny_engine(140)
    quick, usage = answers(engine, rounds)
    slow, plain_usage = answers(plain, rounds)
    assert_alike(quick, slow)
    assert usage.evicted_tokens <= plain_usage.evicted_tokens + usage.drafted_tokens
    assert usage.preemptions == plain_usage.preemptions == 0


def test_a_draft_leaves_a_pass_as_small_as_it_says_the_same_in(monkeypatch: pytest.MonkeyPatch) -> None:
    engine, rows = tiny_engine(pass_costs=replace(FREE, alike_rows=4)), list[int]()
    forward = type(engine.model).forward

    def counting(model: Model, batch: Batch, pool: KvPool) -> Logits:
        rows.append(len(batch.tokens))
        return forward(model, batch, pool)

    monkeypatch.setattr(type(engine.model), "forward", counting)
    prompt_rows = 16
    answers(engine, [[Asked(TEXTS[3], 5, 0.0, 60, min_tokens=60)]] * 2)
    assert set(rows) - {prompt_rows} <= {1, 2, 3, 4}
    assert 4 in rows
