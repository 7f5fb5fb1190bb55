"""The four rules against their definitions, on a toy model whose probabilities are known."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptlang.runtime.scoring import build_trie, walk
from promptlang.runtime.select import Options, choose_option, scores

TOKENS = range(4)


def toy_distribution(prefix: tuple[int, ...], seed: int) -> list[float]:
    generator = random.Random(repr((prefix, seed)))
    weights = [generator.random() + 0.01 for _ in TOKENS]
    return [weight / sum(weights) for weight in weights]


def toy_logprobs(option: tuple[int, ...], seed: int = 0) -> np.ndarray:
    return np.array([math.log(toy_distribution(option[:at], seed)[token]) for at, token in enumerate(option)])


def probability(option: tuple[int, ...]) -> float:
    return math.exp(toy_logprobs(option).sum())


option_sets = st.lists(
    st.lists(st.sampled_from(TOKENS), min_size=1, max_size=4).map(tuple), min_size=1, max_size=8, unique=True
).map(tuple)


@given(option_sets)
def test_sum_is_the_probability_of_the_option_and_of_nothing_that_extends_it(options: Options) -> None:
    values = scores("sum", options, [toy_logprobs(option) for option in options])
    for option, value in zip(options, values, strict=True):
        longer = [other for other in options if other != option and other[: len(option)] == option]
        nearest = [o for o in longer if not any(p != o and o[: len(p)] == p for p in longer)]
        event = probability(option) - sum(map(probability, nearest))
        assert math.isclose(math.exp(value), max(event, 0.0), rel_tol=1e-6, abs_tol=1e-9)


@given(option_sets)
def test_mean_and_prior_are_what_they_say(options: Options) -> None:
    here, empty = [toy_logprobs(o) for o in options], [toy_logprobs(o, seed=1) for o in options]
    means = scores("mean", options, here)
    assert means == pytest.approx([values.mean() for values in here])
    assert scores("prior", options, here, empty) == pytest.approx(
        [a.mean() - b.mean() for a, b in zip(here, empty, strict=True)]
    )


@given(option_sets)
def test_greedy_follows_the_likeliest_token_of_the_trie(options: Options) -> None:
    values = scores("greedy", options, [toy_logprobs(option) for option in options])
    winner = options[int(np.argmax(values))]
    path: tuple[int, ...] = ()
    while True:
        heads = {option[len(path)] for option in options if option[: len(path)] == path and len(option) > len(path)}
        if not heads:
            break
        distribution = toy_distribution(path, 0)
        best = max(heads, key=lambda token: distribution[token])
        if path in options and 1 - sum(distribution[token] for token in heads) > distribution[best]:
            break
        path += (best,)
    assert winner == path
    assert sum(np.isfinite(values)) == 1


def test_a_likely_first_token_does_not_decide() -> None:
    """Both start so: one goes on surely, the other splits; a third is as likely as a whole."""
    options = ((0, 1), (0, 2), (3,))
    logprobs = [np.log([0.6, 0.4]), np.log([0.6, 0.6]), np.log([0.4])]
    assert choose_option(scores("sum", options, logprobs), 0, 0).index == 2


def test_a_probability_of_one_counts() -> None:
    assert choose_option(scores("sum", ((0,), (1,)), [np.array([0.0]), np.array([-40.0])]), 0, 0).index == 0


def test_ties_go_to_the_first() -> None:
    assert choose_option([-1.0, -1.0], 0, 0).index == 0


@given(st.lists(st.floats(-20, 0), min_size=1, max_size=6), st.floats(0, 1, exclude_max=True))
def test_probs_sum_to_one_and_draws_are_among_the_options(values: list[float], uniform: float) -> None:
    selection = choose_option(values, 1.0, uniform)
    assert math.isclose(sum(selection.probs), 1.0)
    assert 0 <= selection.index < len(values)


def test_draws_follow_the_probabilities() -> None:
    values = np.log([0.2, 0.5, 0.3])
    draws = [choose_option(values, 1.0, (at + 0.5) / 1000).index for at in range(1000)]
    assert [draws.count(index) for index in range(3)] == [200, 500, 300]


@given(option_sets)
def test_the_trie_spells_every_option_and_shares_first_tokens(options: Options) -> None:
    trie = build_trie(options)
    found = {}
    for node in walk(trie):
        assert all(child.tokens[0] == first and child.parent is node for first, child in node.children.items())
        assert node is trie or node.option is not None or len(node.children) > 1
        if node.option is not None:
            pieces, above = [], node
            while above is not None:
                pieces.append(above.tokens)
                above = above.parent
            found[node.option] = tuple(token for piece in reversed(pieces) for token in piece)
    assert found == dict(enumerate(options))
