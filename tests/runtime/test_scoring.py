"""Options at scale, beside a full forward over prompt and option, the plain way."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

import cities
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_engine import prompt_of, tiny_engine
from tiny_models import cold_logits

from examples import examples
from promptlang.runtime import engine as engine_module
from promptlang.runtime.backend import Rule
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.engine import Engine
from promptlang.runtime.models import embedded
from promptlang.runtime.models.batch import Batch, build_batch
from promptlang.runtime.models.loading import load
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.requests import RequestError, ScoredOptions, ScoreOptions
from promptlang.runtime.select import Logprobs, Options, choose_option, scores
from promptlang.runtime.usage import Usage

PROMPT = "The quick brown fox jumps over "
OPTIONS = [
    "the",
    "the dog",
    "the dog sleeps",
    " the",
    "fox",
    "über",
    "世界",
    "🙂",
    "<|im_end|>",
    "The dog sleeps; the fox",
]
TEXTS = st.lists(st.sampled_from(["the", " dog", " fox", "é", "The", " ", "x"]), min_size=1, max_size=5).map("".join)


def encode(engine: Engine, texts: list[str]) -> Options:
    return tuple(tuple(engine.tokenizer.encode(text)) for text in texts)


def ask(engine: Engine, prompt: TokenPrompt, options: Options, best_only: bool = False) -> tuple[Logprobs, Usage]:
    usage = Usage()
    answer = engine.submit(ScoreOptions(prompt, options, usage, best_only))
    while engine.step():
        pass
    engine.check()
    assert isinstance(answer.result, ScoredOptions)
    return answer.result.logprobs, usage


def winner(options: Options, logprobs: Logprobs) -> int:
    return choose_option(scores("sum", options, logprobs), 0, 0).index


# The rules, by hand ------------------------------------------------------------------------------------------


def brute_force(engine: Engine, prompt: list[int], option: tuple[int, ...]) -> np.ndarray:
    rows = cold_logits(engine.model, [*prompt, *option]).double().log_softmax(-1)[len(prompt) - 1 : -1]
    return rows[torch.arange(len(option)), torch.tensor(option)].numpy()


def by_hand(rule: Rule, options: Options, here: list[np.ndarray], empty: list[np.ndarray]) -> list[float]:
    """The rules as the language's reference words them; `greedy` gives the winner 0."""
    if rule == "mean":
        return [values.mean() for values in here]
    if rule == "prior":
        return [values.mean() - before.mean() for values, before in zip(here, empty, strict=True)]
    if rule == "greedy":
        return [0.0 if index == greedy_by_hand(options, here) else -math.inf for index in range(len(options))]
    probabilities = {option: math.exp(values.sum()) for option, values in zip(options, here, strict=True)}
    return [math.log(probability - sum(longer(option, probabilities))) for option, probability in probabilities.items()]


def longer(option: tuple[int, ...], probabilities: dict[tuple[int, ...], float]) -> list[float]:
    """Probabilities of the options that extend this one, without those that extend another such."""
    beyond = [other for other in probabilities if len(other) > len(option) and other[: len(option)] == option]
    nearest = [o for o in beyond if not any(len(p) < len(o) and o[: len(p)] == p for p in beyond)]
    return [probabilities[o] for o in nearest]


def greedy_by_hand(options: Options, here: list[np.ndarray]) -> int:
    path: tuple[int, ...] = ()
    while True:
        at = len(path)
        heads = {o[at]: math.exp(v[at]) for o, v in zip(options, here, strict=True) if o[:at] == path and len(o) > at}
        best = max(heads, key=lambda token: heads[token], default=None)
        if best is None or (path in options and 1 - sum(heads.values()) > heads[best]):
            return options.index(path)
        path += (best,)


@pytest.mark.parametrize("rule", ["sum", "mean", "prior", "greedy"])
def test_each_rule_gives_what_a_full_forward_gives_by_hand(rule: Rule) -> None:
    engine = tiny_engine()
    options = encode(engine, OPTIONS)
    prompt, nothing = prompt_of(engine, PROMPT), engine.new_prompt()
    here = ask(engine, prompt, options)[0]
    empty = ask(engine, nothing, options)[0] if rule == "prior" else None
    values = scores(rule, options, here, empty)
    expected = by_hand(
        rule,
        options,
        [brute_force(engine, prompt.flush(), option) for option in options],
        [brute_force(engine, nothing.flush(), option) for option in options] if rule == "prior" else [],
    )
    if rule == "greedy":
        assert int(np.argmax(values)) == int(np.argmax(expected))
    else:
        np.testing.assert_allclose(values, expected, atol=1e-3)
    assert sum(choose_option(values, 0, 0).probs) == pytest.approx(1, abs=1e-6)


def test_draws_at_a_temperature_follow_the_models_own_probabilities() -> None:
    engine = tiny_engine()
    options = encode(engine, OPTIONS)
    prompt = prompt_of(engine, PROMPT)
    values = scores("sum", options, ask(engine, prompt, options)[0])
    probs = choose_option(values, 0, 0).probs
    draws = [choose_option(values, 1.0, (at + 0.5) / 2000).index for at in range(2000)]
    assert [draws.count(index) / 2000 for index in range(len(options))] == pytest.approx(probs, abs=1e-3)


# Giving up ---------------------------------------------------------------------------------------------------


@settings(deadline=None, max_examples=examples(60))
@given(st.lists(TEXTS, min_size=2, max_size=25, unique=True))
def test_giving_up_never_changes_the_winner(texts: list[str]) -> None:
    engine = tiny_engine()
    options = tuple(dict.fromkeys(encode(engine, texts)))
    every, _ = ask(engine, prompt_of(engine, PROMPT), options)
    best, _ = ask(engine, prompt_of(engine, PROMPT), options, best_only=True)
    assert winner(options, best) == winner(options, every)


def test_an_option_whose_extensions_take_its_probability_gives_up_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """`10` is the likeliest token, but goes on in ways that are unlikely each; `20 21 23 25` is the likeliest whole."""
    engine = tiny_engine()
    prompt = prompt_of(engine, PROMPT)
    table = torch.full((engine.tokenizer.vocab_size,) * 2, -20.0)
    table[prompt.flush()[-1], [10, 20]] = torch.tensor([0.6, 0.4]).log()
    table[10, 100:200] = torch.tensor(0.01).log()
    table[[20, 21, 23], [21, 23, 25]] = 0.0
    monkeypatch.setattr(engine.model, "forward", lambda batch, pool: Bigrams(table, batch.tokens[batch.rows]))
    options = ((10,), *((10, token) for token in range(100, 200)), (20, 21, 23, 25), (20, 21, 23, 26), (20, 22))
    logprobs, _ = ask(engine, prompt, options, best_only=True)
    assert options[winner(options, logprobs)] == (20, 21, 23, 25)


@dataclass
class Bigrams:
    """Logits that the token before decides alone."""

    table: torch.Tensor
    tokens: torch.Tensor

    def rows(self, rows: Sequence[int]) -> torch.Tensor:
        return self.table[self.tokens[list(rows)]]


def test_what_was_scored_and_what_was_given_up_is_counted() -> None:
    engine = tiny_engine()
    options = encode(engine, OPTIONS)
    _, usage = ask(engine, prompt_of(engine, PROMPT), options)
    prefixes = {option[:length] for option in options for length in range(1, len(option) + 1)}
    assert (usage.option_tokens, usage.unscored_tokens) == (len(prefixes), 0)
    logprobs, usage = ask(engine, prompt_of(engine, PROMPT), options, best_only=True)
    assert usage.option_tokens == len(prefixes)
    assert (usage.unscored_tokens > 0) == any(values is None for values in logprobs)


# Odd options -------------------------------------------------------------------------------------------------


def test_options_that_share_all_but_their_ends_compute_the_shared_part_once() -> None:
    engine = tiny_engine()
    head = tuple(engine.tokenizer.encode("The quick brown fox " * 8))
    options = tuple((*head, first, second) for first in range(100, 200) for second in range(100, 200))
    _, usage = ask(engine, prompt_of(engine, PROMPT), options)
    prompt = len(prompt_of(engine, PROMPT).flush())
    assert usage.computed_tokens == prompt + len(head) + 100


def test_options_may_hold_more_tokens_than_the_cache() -> None:
    engine = tiny_engine(tokens=256)
    options = encode(engine, [f"{word} {'jumps ' * 12}" for word in "abcdefghijklmnopqrstuvwxyz"])
    assert sum(map(len, options)) > 256
    _, usage = ask(engine, prompt_of(engine, PROMPT), options)
    assert usage.unscored_tokens == 0


# Little room ---------------------------------------------------------------------------------------------------

MIDDLES = ("over " * 9, "lazy " * 9)
BUSHY = [f"{head} {middle} {tail}" for head in ("fox", "dog") for middle in MIDDLES for tail in "abc"]


def same(found: Logprobs, expected: Logprobs) -> bool:
    return all(np.allclose(mine, others, atol=1e-3) for mine, others in zip(found, expected, strict=True))  # type: ignore[arg-type]


def pause_all(engine: Engine) -> None:
    for job in list(engine._scheduler._running):
        engine._scheduler._pause(job)


def tight(engine: Engine, options: Options, text: str = PROMPT) -> int:
    """The smallest pool that a request is not refused in."""
    return len(prompt_of(engine, text).flush()) + max(map(len, options))


@pytest.mark.parametrize("shares", [True, False])
def test_a_trie_fits_where_its_deepest_path_does(shares: bool) -> None:
    roomy = tiny_engine()
    options = encode(roomy, BUSHY)
    expected, ample = ask(roomy, prompt_of(roomy, PROMPT), options)
    engine = tiny_engine(tokens=tight(roomy, options), shares=shares)
    found, usage = ask(engine, prompt_of(engine, PROMPT), options)
    assert same(found, expected)
    assert (usage.unscored_tokens, usage.requested_tokens) == (0, ample.requested_tokens)
    best, _ = ask(engine, prompt_of(engine, PROMPT), options, best_only=True)
    assert winner(options, best) == winner(options, expected)


def test_where_room_is_short_what_is_behind_a_branch_comes_before_the_next_branch() -> None:
    """Each of the two heads is computed once, as when there is room for both."""
    roomy = tiny_engine()
    options = encode(roomy, [f"{head * 20}{tail}" for head in ("fox ", "dog ") for tail in ("a b", "c d", "e f")])
    _, ample = ask(roomy, prompt_of(roomy, PROMPT), options)
    engine = tiny_engine(tokens=tight(roomy, options) + 2)
    _, usage = ask(engine, prompt_of(engine, PROMPT), options)
    assert usage.computed_tokens <= 1.2 * ample.computed_tokens


@pytest.mark.parametrize("best_only", [False, True])
def test_requests_that_succeed_alone_succeed_together(best_only: bool) -> None:
    roomy = tiny_engine()
    options = encode(roomy, BUSHY)
    texts = [PROMPT, "How are you? ", "The dog sleeps; the fox "]
    expected = [ask(roomy, prompt_of(roomy, text), options)[0] for text in texts]
    engine = tiny_engine(tokens=int(1.2 * max(tight(roomy, options, text) for text in texts)))
    answers = [engine.submit(ScoreOptions(prompt_of(engine, text), options, Usage(), best_only)) for text in texts]
    while engine.step():
        pass
    engine.check()
    for answer, cold in zip(answers, expected, strict=True):
        assert isinstance(answer.result, ScoredOptions), answer.error
        assert winner(options, answer.result.logprobs) == winner(options, cold)
        assert best_only or same(answer.result.logprobs, cold)


@pytest.mark.parametrize("steps", range(1, 7))
@pytest.mark.parametrize("shares", [True, False])
def test_a_request_paused_at_any_step_scores_what_it_scores_unpaused(steps: int, shares: bool) -> None:
    engine = tiny_engine(tokens_a_step=4, shares=shares)
    options = encode(engine, BUSHY)
    expected, _ = ask(tiny_engine(), prompt_of(engine, PROMPT), options)
    usage = Usage()
    answer = engine.submit(ScoreOptions(prompt_of(engine, PROMPT), options, usage))
    for _ in range(steps):
        engine.step()
    pause_all(engine)
    engine.tree.evict(9 * steps)
    while engine.step():
        pass
    engine.check()
    assert isinstance(answer.result, ScoredOptions)
    assert same(answer.result.logprobs, expected)
    assert usage.preemptions == 1


def test_what_is_cached_when_a_paused_request_resumes_is_not_computed_again() -> None:
    engine = tiny_engine(tokens_a_step=4)
    options = encode(engine, BUSHY)
    usage = Usage()
    engine.submit(ScoreOptions(prompt_of(engine, PROMPT), options, usage))
    for _ in range(6):
        engine.step()
    pause_all(engine)
    while engine.step():
        pass
    assert usage.preemptions == 1
    assert usage.computed_tokens <= usage.requested_tokens + 1


def test_no_lane_reads_what_the_same_pass_computes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else a pass that fails would leave in the tree what was never computed."""

    def checked(lanes: list[Lane], *rest: object) -> Batch:
        new = {slot for lane in lanes for slot in lane.slots.tolist()}
        read = {slot for lane in lanes for run in lane.context for slot in range(run.start, run.start + run.length)}
        assert not new & read
        return build_batch(lanes, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(engine_module, "build_batch", checked)
    engine = tiny_engine(tokens_a_step=64)
    options = encode(engine, [f"fox {'over ' * 4}{tail} {tail}" for tail in "abcdefgh"])
    answer = engine.submit(ScoreOptions(prompt_of(engine, PROMPT), options, Usage()))
    for _ in range(2):
        engine.step()
    pause_all(engine)
    engine.tree.evict(1000)
    while engine.step():
        pass
    assert isinstance(answer.result, ScoredOptions)


def test_a_long_option_scores_as_its_full_forward() -> None:
    engine = tiny_engine()
    options = encode(engine, ["the fox runs over the hill " * 40, "the fox"])
    prompt = prompt_of(engine, PROMPT)
    logprobs, _ = ask(engine, prompt, options)
    for option, values in zip(options, logprobs, strict=True):
        np.testing.assert_allclose(values, brute_force(engine, prompt.flush(), option), atol=1e-3)


def test_an_option_longer_than_the_cache_is_refused_with_the_numbers() -> None:
    engine = tiny_engine(tokens=64)
    with pytest.raises(RequestError, match="KV pool of 64 tokens"):
        ask(engine, prompt_of(engine, PROMPT), encode(engine, ["the fox " * 60, "the"]))


# On the embedded model ---------------------------------------------------------------------------------------

needs_embedded = pytest.mark.skipif(embedded.find_gguf() is None, reason=f"needs {embedded.PACKAGE}")


@pytest.fixture(scope="module")
def smollm() -> Engine:
    return Engine(load())


def question(engine: Engine, text: str) -> TokenPrompt:
    prompt = engine.new_prompt()
    prompt.add(text)
    prompt.flush()
    return prompt


@pytest.mark.slow
@needs_embedded
@pytest.mark.parametrize(
    ("text", "is_known"), [("The capital of France:\n", True), ("Once upon a time in the city of", False)]
)
def test_two_hundred_cities_have_the_same_winner_for_fewer_scores(smollm: Engine, text: str, is_known: bool) -> None:
    """Where the model has an answer, most tokens need no score; where all cities are alike to it, fewer are spared."""
    options = encode(smollm, cities.NAMES)
    every, _ = ask(smollm, question(smollm, text), options)
    best, usage = ask(smollm, question(smollm, text), options, best_only=True)
    assert len(options) >= 200
    assert winner(options, best) == winner(options, every)
    assert usage.unscored_tokens >= usage.option_tokens / (2 if is_known else 4)


@pytest.mark.slow
@needs_embedded
@pytest.mark.parametrize("shape", [" {:04d}", "option {}", " Ticket {}"])
def test_ten_thousand_options_take_under_three_seconds(smollm: Engine, shape: str) -> None:
    ask(smollm, question(smollm, "Warm"), encode(smollm, ["a", "b"]))
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    started = time.process_time()
    options = encode(smollm, [shape.format(number) for number in range(10_000)])
    logprobs, _ = ask(smollm, question(smollm, "The answer is:"), options, best_only=True)
    winner(options, logprobs)
    seconds = time.process_time() - started
    torch.set_num_threads(threads)
    assert seconds < 3
