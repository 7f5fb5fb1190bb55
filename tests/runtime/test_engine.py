"""The engine as its callers see it: right whatever it cached, batched, chunked, paused or cancelled."""

import random

import numpy as np
import pytest
import tiny_models
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_engine import prompt_of, tiny_engine, tiny_loaded

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.shapes import Bool, Int
from promptlang.grammar.vocabulary import Mask
from promptlang.runtime.engine import CacheFault, Engine
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import (
    Answer,
    Cancelled,
    GeneratedTokens,
    GenerateTokens,
    RequestError,
    ScoredOptions,
    ScoreOptions,
)
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.text.stops import AnswerText
from promptlang.runtime.usage import Usage

FOX = "The quick brown fox jumps over the lazy dog. "
TEXTS = [
    "How",
    "How are you?",
    "the dog",
    FOX,
    FOX + "The dog sleeps",
    FOX + "The fox runs",
    FOX * 4,
    FOX * 4 + "the end",
]


def finish(engine: Engine) -> None:
    while engine.step():
        pass
    engine.check()


def ask(engine: Engine, text: str, *, seed: int = 0, usage: Usage | None = None, **options: object) -> Answer:
    options.setdefault("max_tokens", 12)
    request = GenerateTokens(prompt_of(engine, text), RandomStream(seed, text), usage or Usage(), **options)  # type: ignore[arg-type]
    return engine.submit(request)


def tokens_of(answer: Answer) -> list[int]:
    assert answer.error is None, answer.error
    assert isinstance(answer.result, GeneratedTokens)
    return answer.result.tokens


def run(engine: Engine, texts: list[str], **options: object) -> list[list[int]]:
    answers = [ask(engine, text, **options) for text in texts]
    finish(engine)
    return [tokens_of(answer) for answer in answers]


@pytest.fixture(scope="module")
def cold() -> dict[str, list[int]]:
    """Each text's answer on an engine of its own, as transformers gives it."""
    network = tiny_loaded().model.network  # type: ignore[attr-defined]
    engine = tiny_engine()
    answers = {text: tiny_models.generate(network, prompt_of(engine, text).flush(), 12) for text in TEXTS}
    return {text: whole_characters(engine, tokens) for text, tokens in answers.items()}


def whole_characters(engine: Engine, tokens: list[int]) -> list[int]:
    """Tokens without a character that their end has cut."""
    text = AnswerText()
    for token in tokens:
        text.push(engine.tokenizer.token_bytes[token])
    whole, rest = text.kept_tokens()
    return tokens[:whole] + engine.vocabulary.spell(rest)


@pytest.mark.parametrize("options", [{}, {"tokens_a_step": 8}, {"shares": False}, {"answers_at_once": 2}])
def test_greedy_answers_are_transformers_own(cold: dict[str, list[int]], options: dict[str, int]) -> None:
    engine = tiny_engine(**options)
    assert run(engine, TEXTS) == list(cold.values())
    assert run(engine, TEXTS[::-1]) == list(cold.values())[::-1]
    for text in TEXTS:
        assert run(engine, [text]) == [cold[text]]


@pytest.mark.parametrize("length", [7, 8, 9, 15, 16, 17, 24])
def test_prompts_around_a_chunks_border_are_cold_ones(length: int) -> None:
    engine, chunked = tiny_engine(), tiny_engine(tokens_a_step=8)
    tokens = engine.tokenizer.encode(FOX * 4)[:length]

    def answer(on: Engine) -> list[int]:
        prompt = on.new_prompt()
        prompt.extend(tokens)
        result = on.submit(GenerateTokens(prompt, RandomStream(0), Usage(), max_tokens=6))
        finish(on)
        return tokens_of(result)

    expected = answer(engine)
    assert answer(chunked) == expected
    assert answer(chunked) == expected


def test_a_prefix_that_waiting_requests_share_is_computed_once() -> None:
    engine, usage = tiny_engine(tokens_a_step=16), Usage()
    for tail in ("a", "b", "c", "d"):
        ask(engine, FOX * 6 + tail, usage=usage)
    finish(engine)
    assert usage.computed_tokens <= usage.optimal_tokens + usage.calls
    assert usage.requested_tokens > 3 * usage.optimal_tokens


def test_an_answer_is_cached_with_its_prompt() -> None:
    engine, usage = tiny_engine(), Usage()
    first = ask(engine, FOX)
    finish(engine)
    prompt = first.request.prompt
    prompt.add(" And then?")
    engine.submit(GenerateTokens(prompt, RandomStream(1), usage, max_tokens=4))
    finish(engine)
    new = len(engine.tokenizer.encode(" And then?"))
    assert usage.computed_tokens <= new + 1


def test_without_a_cache_everything_is_computed() -> None:
    engine, usage = tiny_engine(shares=False), Usage()
    for text in TEXTS:
        ask(engine, text, usage=usage)
    finish(engine)
    assert usage.computed_tokens == usage.requested_tokens
    assert engine.cache.used == 0


@pytest.mark.slow
def test_a_small_pool_gives_what_a_large_one_gives() -> None:
    """200 requests of mixed lengths in a pool 1.2 times as large as the largest of them needs."""
    generator = random.Random(3)
    texts = [FOX * generator.randint(1, 4) + str(index % 17) for index in range(200)]
    sampling = Sampling(temperature=1.0)
    expected = run(tiny_engine(32_768), texts, sampling=sampling, max_tokens=8)
    largest = len(tiny_engine().tokenizer.encode(FOX * 4)) + 10
    engine, usage = tiny_engine(tokens=int(1.2 * largest)), Usage()
    assert run(engine, texts, sampling=sampling, max_tokens=8, usage=usage) == expected
    assert usage.evicted_tokens > 0


@pytest.mark.slow
def test_a_paused_answer_resumes_exactly() -> None:
    """Short prompts with long answers outgrow the pool together, so some must wait for others."""
    texts = [FOX + name for name in "abcdefgh"]
    sampling = Sampling(temperature=0.7)
    expected = run(tiny_engine(16_384), texts, sampling=sampling, max_tokens=60)
    engine, usage = tiny_engine(tokens=160), Usage()
    assert run(engine, texts, sampling=sampling, max_tokens=60, usage=usage) == expected
    assert usage.preemptions > 0


def test_a_request_larger_than_the_pool_is_refused_with_the_numbers() -> None:
    engine = tiny_engine(tokens=32)
    with pytest.raises(RequestError, match="32"):
        ask(engine, FOX * 8)
    engine.check()


def test_a_request_that_does_not_fit_beside_what_is_pinned_fails_alone(cold: dict[str, list[int]]) -> None:
    engine = tiny_engine(tokens=64)
    run(engine, [FOX])
    pinned = engine.pin(prompt_of(engine, FOX).flush())
    assert pinned is not None
    large, small = ask(engine, "the dog " * 24), ask(engine, "How are you?")
    finish(engine)
    assert isinstance(large.error, RequestError)
    assert tokens_of(small) == cold["How are you?"]
    engine.unpin(pinned)
    engine.check()


def test_what_is_pinned_before_it_is_computed_stays_from_then_on() -> None:
    engine = tiny_engine(tokens=120)
    tokens = prompt_of(engine, FOX).flush()
    pin = engine.pin(tokens)
    run(engine, [FOX + "a", FOX + "b"])
    run(engine, ["How are you? " * 6, "the dog sleeps " * 8], max_tokens=2)
    assert engine.tree.peek(np.array(tokens, np.int32)) == len(tokens) == engine.tree.locked
    engine.unpin(pin)
    assert engine.tree.locked == 0


def test_pins_keep_no_more_than_half_the_pool_whatever_runs() -> None:
    engine = tiny_engine(tokens=100)
    pin = engine.pin(prompt_of(engine, FOX * 7).flush())
    run(engine, [FOX * 7])
    assert pin.length == engine.tree.locked == 50
    other = engine.pin(prompt_of(engine, "How are you?").flush())
    engine.unpin(pin)
    run(engine, ["How are you?"])
    assert other.is_whole
    engine.unpin(other)
    engine.check()


def test_a_request_beyond_the_models_context_is_refused() -> None:
    with pytest.raises(RequestError, match="2048"):
        ask(tiny_engine(), FOX, max_tokens=2048)


@pytest.mark.parametrize("steps", range(8))
def test_cancelling_at_any_step_leaves_nothing_behind(cold: dict[str, list[int]], steps: int) -> None:
    engine = tiny_engine(tokens_a_step=16)
    doomed, other = ask(engine, FOX * 4), ask(engine, "How are you?")
    for _ in range(steps):
        engine.step()
    doomed.cancel()
    finish(engine)
    assert isinstance(doomed.error, Cancelled)
    assert tokens_of(other) == cold["How are you?"]
    assert run(engine, [FOX * 4]) == [cold[FOX * 4]]


@pytest.mark.parametrize("steps", range(5))
def test_what_was_not_read_of_a_prompt_is_not_cached(steps: int) -> None:
    engine = tiny_engine(tokens_a_step=16)
    usage = Usage()
    answer = ask(engine, "the quick brown fox jumps over the lazy dog and on " * 2, usage=usage, max_tokens=4)
    for _ in range(steps):
        engine.step()
    answer.cancel()
    assert usage.cached_tokens == 0
    assert usage.requested_tokens == usage.computed_tokens
    assert (usage.computed_tokens > 0) == (steps > 0)


@pytest.mark.parametrize("steps", range(1, 8))
def test_a_prefill_cancelled_after_any_chunk_leaves_no_trace_in_a_later_answer(
    cold: dict[str, list[int]], steps: int
) -> None:
    """What was freed is overwritten, as another request would: a prefix that points there would show."""
    engine = tiny_engine(tokens_a_step=8)
    doomed = ask(engine, FOX * 4)
    for _ in range(steps):
        engine.step()
    doomed.cancel()
    free = torch.from_numpy(engine.tree.allocator.free_slots()).long()
    for layer in [*engine.pool.keys, *engine.pool.values]:
        layer[:, free] = 1e4
    assert run(engine, [FOX * 4]) == [cold[FOX * 4]]


@pytest.mark.parametrize("steps", range(1, 14))
def test_an_answer_paused_at_any_step_is_the_one_never_paused(cold: dict[str, list[int]], steps: int) -> None:
    engine, usage = tiny_engine(tokens_a_step=16), Usage()
    answer = ask(engine, FOX * 4, usage=usage)
    for _ in range(steps):
        engine.step()
    scheduler = engine._scheduler
    for job in list(scheduler._running):
        scheduler._pause(job)
    engine.tree.evict(steps * 5)
    finish(engine)
    assert tokens_of(answer) == cold[FOX * 4]
    assert usage.preemptions == 1


def test_an_engine_that_has_lost_a_slot_says_so_when_it_is_idle() -> None:
    engine = tiny_engine()
    ask(engine, FOX)
    engine.step()
    engine.tree.allocator.allocate(1)
    while engine.step():
        pass
    with pytest.raises(CacheFault, match="internal error"):
        ask(engine, FOX)


def test_an_engine_that_forgot_a_lock_says_so_when_it_is_idle() -> None:
    engine = tiny_engine()
    run(engine, [FOX])
    engine.tree.lock(engine.tree.find(np.array(engine.tokenizer.encode(FOX), np.int32)))
    ask(engine, FOX)
    while engine.step():
        pass
    with pytest.raises(CacheFault, match="locked"):
        ask(engine, FOX)


KINDS: dict[str, dict[str, object]] = {
    "greedy": {},
    "sampled": {"sampling": Sampling(temperature=1.0), "seed": 5},
    "narrow": {"sampling": Sampling(temperature=0.8, top_p=0.9, top_k=20), "seed": 6},
    "whole number": {"shape": Int(1, 500), "sampling": Sampling(temperature=1.0), "seed": 7},
    "truth": {"shape": Bool()},
}


def ask_kind(engine: Engine, text: str, kind: str) -> Answer:
    options = dict(KINDS[kind])
    shape = options.pop("shape", None)
    if isinstance(shape, Int | Bool):
        options["constraint"] = compile_constraint(shape, engine.vocabulary)
    return ask(engine, text, **options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_in_fifty_batches_each_branch_gives_what_it_gives_alone() -> None:
    """Branches behind one prefix, of all kinds of answers, with other mates, order, chunks and room each time."""
    branches = [(FOX * 2 + tail, kind) for tail in ("a", "b") for kind in KINDS]
    alone = {}
    for text, kind in branches:
        engine = tiny_engine()
        answer = ask_kind(engine, text, kind)
        finish(engine)
        alone[text, kind] = tokens_of(answer)
    generator = random.Random(11)
    for _ in range(50):
        mates = generator.sample(branches, generator.randint(2, len(branches)))
        engine = tiny_engine(
            tokens=generator.choice([120, 200, 4096]),
            tokens_a_step=generator.choice([8, 32, 512]),
            answers_at_once=generator.choice([2, 5, 64]),
        )
        answers = [ask_kind(engine, text, kind) for text, kind in mates]
        finish(engine)
        assert {mate: tokens_of(answer) for mate, answer in zip(mates, answers, strict=True)} == {
            mate: alone[mate] for mate in mates
        }


class Fragile:
    """A constraint that gives up after a few tokens."""

    engine = "test"

    def __init__(self, masks: int) -> None:
        self.masks = masks

    def start(self) -> "Fragile":
        return self

    def can_end(self) -> bool:
        return False

    def is_done(self) -> bool:
        return False

    def forced(self) -> list[int]:
        return []

    def advance(self, token: int) -> None:
        pass

    def mask(self) -> Mask:
        self.masks -= 1
        if not self.masks:
            raise ConstraintError("too complex")
        return tiny_engine().vocabulary.text_mask


def test_a_constraint_that_gives_up_fails_its_own_answer_alone(cold: dict[str, list[int]]) -> None:
    engine = tiny_engine()
    fragile, other = ask(engine, FOX * 2, constraint=Fragile(3)), ask(engine, FOX)
    finish(engine)
    assert isinstance(fragile.error, ConstraintError)
    assert tokens_of(other) == cold[FOX]


def test_a_stop_string_stays_out_of_answer_prompt_and_cache(cold: dict[str, list[int]]) -> None:
    engine = tiny_engine()
    whole = engine.tokenizer.decode(cold[FOX])
    stop = whole[4:6]
    answer = ask(engine, FOX, stop=(stop,))
    finish(engine)
    assert isinstance(answer.result, GeneratedTokens)
    assert answer.result.text == whole[: whole.index(stop)]
    prompt = answer.request.prompt
    assert engine.tokenizer.decode(prompt.flush()).endswith(answer.result.text)
    warm = engine.submit(GenerateTokens(prompt, RandomStream(0), Usage(), max_tokens=8))
    finish(engine)
    fresh = tiny_engine()
    again = fresh.new_prompt()
    again.extend(prompt.flush()[: -len(tokens_of(warm))])
    cold_answer = fresh.submit(GenerateTokens(again, RandomStream(0), Usage(), max_tokens=8))
    finish(fresh)
    assert tokens_of(warm) == tokens_of(cold_answer)


@pytest.mark.slow
@settings(max_examples=50, deadline=None)
@given(st.permutations(TEXTS), st.integers(1, 8), st.sampled_from([8, 64, 512]))
def test_a_sampled_answer_depends_on_its_own_stream_alone(order: list[str], at_once: int, budget: int) -> None:
    alone = {
        text: run(tiny_engine(), [text], sampling=Sampling(temperature=1.0), max_tokens=4)[0] for text in order[:2]
    }
    together = run(
        tiny_engine(answers_at_once=at_once, tokens_a_step=budget),
        order,
        sampling=Sampling(temperature=1.0),
        max_tokens=4,
    )
    assert dict(zip(order, together, strict=True)) | alone == dict(zip(order, together, strict=True))


def test_a_cold_request_is_served_while_warm_ones_keep_coming() -> None:
    engine = tiny_engine(answers_at_once=1)
    run(engine, [FOX * 4])
    cold_one = ask(engine, "How are you?", max_tokens=2)
    for index in range(40):
        ask(engine, FOX * 4 + str(index % 3), max_tokens=2)
        engine.step()
        engine.step()
    assert cold_one.is_done
    finish(engine)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_after_an_answer_that_a_stop_string_ended_the_same_prompt_is_answered_as_when_cold(
    cold: dict[str, list[int]], length: int
) -> None:
    engine = tiny_engine()
    whole = engine.tokenizer.decode(cold[FOX])
    ask(engine, FOX, stop=(whole[3 : 3 + length],))
    finish(engine)
    assert run(engine, [FOX, FOX]) == [cold[FOX], cold[FOX]]


def cache_of(engine: Engine, text: str) -> None:
    """Leave a text in the cache that no prompt holds."""
    answer = ask(engine, text, max_tokens=1)
    finish(engine)
    answer.request.prompt.release()


@pytest.mark.parametrize("end", ["done", "cancelled"])
def test_what_a_waiting_request_will_read_outlives_what_was_used_later(end: str) -> None:
    engine, usage = tiny_engine(tokens=90, tokens_a_step=8, answers_at_once=1), Usage()
    wanted, unwanted, newcomer = FOX * 2, "How are you? " * 6, "the dog sleeps " * 16
    cache_of(engine, wanted)
    cache_of(engine, unwanted)
    running = ask(engine, newcomer, max_tokens=2)
    engine.step()
    waiting = ask(engine, wanted, max_tokens=1, usage=usage)
    if end == "cancelled":
        waiting.cancel()
    while not running.is_done:
        engine.step()
    tokens = np.array(engine.tokenizer.encode(wanted), np.int32)
    assert (engine.tree.peek(tokens) >= len(tokens) - 1) == (end == "done")
    finish(engine)
    assert usage.computed_tokens <= 1
    assert not any(node.uses for node in engine.tree.nodes())


# Options ---------------------------------------------------------------------------------------------------

OPTION_TEXTS = [
    "the fox",
    "the dog",
    "the",
    "über",
    "yes",
    "The quick brown",
    "The quick",
    "The",
    " the fox",
    "世界",
]


def score(
    engine: Engine, text: str, options: list[str], usage: Usage | None = None, best_only: bool = False
) -> list[object]:
    encoded = tuple(tuple(engine.tokenizer.encode(option)) for option in options)
    answer = engine.submit(ScoreOptions(prompt_of(engine, text), encoded, usage or Usage(), best_only))
    finish(engine)
    assert isinstance(answer.result, ScoredOptions)
    return list(answer.result.logprobs)


def full_forward(engine: Engine, prompt: TokenPrompt, option: list[int]) -> np.ndarray:
    tokens = prompt.flush()
    logprobs = tiny_models.cold_logits(engine.model, [*tokens, *option]).double().log_softmax(-1)
    rows = torch.arange(len(tokens) - 1, len(tokens) + len(option) - 1)
    return logprobs[rows, torch.tensor(option)].numpy()


@pytest.mark.parametrize("options", [{}, {"tokens_a_step": 4}, {"shares": False}])
def test_option_scores_are_those_of_a_full_forward(options: dict[str, int]) -> None:
    engine = tiny_engine(**options)
    prompt = prompt_of(engine, FOX)
    for logprobs, text in zip(score(engine, FOX, OPTION_TEXTS), OPTION_TEXTS, strict=True):
        np.testing.assert_allclose(logprobs, full_forward(engine, prompt, engine.tokenizer.encode(text)), atol=1e-3)


@pytest.mark.parametrize("text", TEXTS)
def test_giving_up_what_cannot_win_keeps_the_winner(text: str) -> None:
    engine = tiny_engine()
    options = [
        f"{head} {middle} {tail}" for head in ("the", "fox", "dog") for middle in ("over", "lazy") for tail in "abcdef"
    ]
    every, best = Usage(), Usage()
    scores = [np.sum(values) for values in score(engine, text, options, every)]
    given_up = [
        -np.inf if values is None else np.sum(values) for values in score(engine, text, options, best, best_only=True)
    ]
    assert np.argmax(given_up) == np.argmax(scores)
    assert best.requested_tokens <= every.requested_tokens


def test_options_that_differ_at_once_cost_no_pass_of_their_own() -> None:
    engine, usage = tiny_engine(), Usage()
    score(engine, FOX, ["a", "b", "c"], usage)
    assert usage.forwards == 1


def test_scoring_without_a_cache_computes_what_it_requests() -> None:
    engine, usage = tiny_engine(shares=False), Usage()
    score(engine, FOX, OPTION_TEXTS, usage)
    assert usage.computed_tokens == usage.requested_tokens
    assert engine.cache.used == 0
