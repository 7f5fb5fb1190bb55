"""Sampling: the right token, the right log-probability, and no neighbour has a say."""

import math
from collections import Counter

import numpy as np
import numpy.typing as npt
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from promptlang.runtime.race import DEPTH, race, times
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.sampler import FEW, Sampling, SamplingRow, few_allowed, logprob_of, sample, spread

VOCABULARY = 70
NOISE = st.integers(0, 2**64 - 1)
SAMPLINGS = st.builds(
    Sampling,
    temperature=st.sampled_from([0.0, 1e-9, 0.3, 1.0, 2.5]),
    top_p=st.sampled_from([1.0, 0.9, 0.2, 1e-9]),
    top_k=st.sampled_from([0, 1, 5, 1000]),
    min_p=st.sampled_from([0.0, 0.05, 0.9]),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
)


def mask_of(tokens: list[int], size: int = VOCABULARY) -> npt.NDArray[np.int32]:
    mask = np.zeros(-(-size // 32), np.uint32)
    for token in tokens:
        mask[token // 32] |= np.uint32(1 << token % 32)
    return mask.view(np.int32)


def logits_of(*rows: dict[int, float]) -> torch.Tensor:
    """Logits of which only some are worth anything."""
    logits = torch.full((len(rows), VOCABULARY), -1000.0)
    for index, row in enumerate(rows):
        for token, value in row.items():
            logits[index, token] = value
    return logits


def sample_rows(logits: torch.Tensor, rows: list[SamplingRow]) -> tuple[list[int], list[float]]:
    """The tokens, and how likely they are."""
    values = list(logits.numpy())
    tokens = [sample(value, row) for value, row in zip(values, rows, strict=True)]
    return tokens, [logprob_of(token, value) for token, value in zip(tokens, values, strict=True)]


def pick(logits: torch.Tensor, noise: int = 0, **sampling: float) -> int:
    row = SamplingRow(Sampling(**sampling), noise=noise)  # type: ignore[arg-type]
    return sample_rows(logits, [row])[0][0]


def drawn(logits: torch.Tensor, count: int = 300, **sampling: float) -> Counter[int]:
    """How often each token comes, over streams as runs have them."""
    return Counter(pick(logits, RandomStream(at).bits(0), **sampling) for at in range(count))


def test_temperature_zero_takes_the_most_likely() -> None:
    assert pick(logits_of({3: 1.0, 9: 2.0, 12: 1.5}), noise=99) == 9


def test_of_equals_the_lowest_token_wins() -> None:
    assert pick(logits_of({60: 2.0, 7: 2.0, 31: 2.0})) == 7


@pytest.mark.parametrize("tokens", [(5, 6, 40), (0, 1, 69)])
def test_tokens_come_in_proportion_to_their_probability(tokens: tuple[int, int, int]) -> None:
    logits = logits_of(dict(zip(tokens, np.log([0.2, 0.5, 0.3]).tolist(), strict=True)))
    counts = drawn(logits, 4000, temperature=1.0)
    assert [counts[token] / 4000 for token in tokens] == pytest.approx([0.2, 0.5, 0.3], abs=0.03)


def test_steps_of_one_stream_are_drawn_in_proportion_too() -> None:
    logits, stream = logits_of({5: 0.0, 6: 0.0}), RandomStream(1, "branch")
    fives = sum(pick(logits, stream.bits(step), temperature=1.0) == 5 for step in range(2000))
    assert fives / 2000 == pytest.approx(0.5, abs=0.04)


def test_temperature_sharpens() -> None:
    logits = logits_of({5: math.log(0.25), 6: math.log(0.75)})
    shares = [drawn(logits, 2000, temperature=temperature)[5] / 2000 for temperature in (1.0, 0.5)]
    assert shares == pytest.approx([0.25, 0.1], abs=0.03)  # 0.25² : 0.75² = 0.1 : 0.9


def test_top_k_keeps_that_many() -> None:
    assert set(drawn(logits_of({5: 1.0, 6: 3.0, 7: 2.0}), temperature=1.0, top_k=2)) == {6, 7}


def test_top_p_keeps_the_smallest_set_that_reaches_it() -> None:
    logits = logits_of({5: math.log(0.5), 6: math.log(0.3), 7: math.log(0.2)})
    assert set(drawn(logits, temperature=1.0, top_p=0.45)) == {5}
    assert set(drawn(logits, temperature=1.0, top_p=0.6)) == {5, 6}


def test_min_p_is_relative_to_the_most_likely() -> None:
    logits = logits_of({5: math.log(0.6), 6: math.log(0.35), 7: math.log(0.05)})
    assert set(drawn(logits, temperature=1.0, min_p=0.5)) == {5, 6}


@pytest.mark.slow
def test_the_last_bits_of_the_logits_hardly_ever_turn_a_draw() -> None:
    """Batch mates change sums in their last bits; a branch's tokens must not follow."""
    generator = torch.Generator().manual_seed(0)
    turned = 0
    for at in range(2000):
        logits = torch.randn(1, 2000, generator=generator) * 3
        noisy = logits + torch.randn(1, 2000, generator=generator) * 1e-5
        noise = RandomStream(at).bits(0)
        turned += pick(logits, noise, temperature=1.0) != pick(noisy, noise, temperature=1.0)
    assert turned <= 2


def test_of_equals_a_filter_keeps_as_many_as_it_may_those_with_the_lower_ids() -> None:
    logits = logits_of({5: 1.0, 6: 1.0, 7: 1.0, 8: 0.0, 4: 2.0})
    for sampling, kept in (
        ({"top_k": 1}, {4}),
        ({"top_k": 3}, {4, 5, 6}),
        ({"top_p": 0.01}, {4}),
        ({"top_p": 0.6}, {4, 5}),
        ({"min_p": 0.3}, {4, 5, 6, 7}),
    ):
        assert set(drawn(logits, temperature=1.0, **sampling)) == kept
    equal = torch.zeros(1, 40)
    assert set(drawn(equal, temperature=1.0, top_k=1)) == {0}
    assert set(drawn(equal, temperature=1.0, top_k=3)) == {0, 1, 2}
    assert set(drawn(equal, temperature=1.0, top_p=0.05)) == {0, 1}
    assert len(set(drawn(equal, temperature=1.0, min_p=1.0))) > 30


def test_a_repeated_token_is_penalised_whatever_its_sign() -> None:
    for high, low in ((2.0, 1.5), (-1.0, -1.5)):
        logits = logits_of({5: high, 6: low})
        row = SamplingRow(Sampling(repetition_penalty=2.0), history=[5, 5])
        assert sample_rows(logits, [row])[0] == [6]


def test_only_allowed_tokens_come() -> None:
    logits = logits_of({5: 9.0, 6: 1.0, 69: 2.0})
    for temperature in (0.0, 1.0):
        row = SamplingRow(Sampling(temperature), mask_of([6, 69]), noise=9)
        assert sample_rows(logits, [row])[0] == [69]


def test_a_mask_that_allows_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no token"):
        sample_rows(logits_of({5: 1.0}), [SamplingRow(Sampling(), mask_of([]))])


def test_the_logprob_is_the_models_own() -> None:
    logits = torch.randn(1, VOCABULARY)
    row = SamplingRow(Sampling(temperature=0.2, top_k=3), mask_of([4, 50]), noise=4)
    (token,), (logprob,) = sample_rows(logits, [row])
    assert logprob == pytest.approx(float(logits.log_softmax(-1)[0, token]), abs=1e-5)


def test_the_logits_are_left_as_they_were() -> None:
    logits = torch.randn(1, VOCABULARY)
    before = logits.clone()
    sample_rows(logits, [SamplingRow(Sampling(1.0, repetition_penalty=1.5), mask_of([1, 2]), 5, [1, 2])])
    assert torch.equal(logits, before)


@settings(deadline=None)
@given(SAMPLINGS, NOISE, st.lists(st.integers(0, VOCABULARY - 1), max_size=20), st.integers(0, 2**32 - 1))
def test_some_allowed_token_always_comes(sampling: Sampling, noise: int, allowed: list[int], seed: int) -> None:
    logits = torch.randn(1, VOCABULARY, generator=torch.Generator().manual_seed(seed)) * 20
    mask = mask_of(allowed) if allowed else None
    (token,), (logprob,) = sample_rows(logits, [SamplingRow(sampling, mask, noise, [1, 2])])
    assert token in (allowed or range(VOCABULARY))
    assert math.isfinite(logprob)


@settings(deadline=None)
@given(st.lists(st.tuples(SAMPLINGS, NOISE), min_size=2, max_size=6), st.integers(0, 2**32 - 1))
def test_a_row_alone_and_in_company_gives_the_same(rows: list[tuple[Sampling, int]], seed: int) -> None:
    logits = torch.randn(len(rows), VOCABULARY, generator=torch.Generator().manual_seed(seed)) * 3
    sampled = [SamplingRow(sampling, noise=noise) for sampling, noise in rows]
    together = list(zip(*sample_rows(logits, sampled), strict=True))
    alone = [
        next(zip(*sample_rows(logits[index : index + 1], [row]), strict=True)) for index, row in enumerate(sampled)
    ]
    assert together == alone


@settings(deadline=None)
@given(SAMPLINGS, NOISE, st.lists(st.integers(0, VOCABULARY - 1), min_size=1, max_size=20), st.integers(0, 2**32 - 1))
def test_of_few_allowed_tokens_the_same_one_comes_without_the_others_logits(
    sampling: Sampling, noise: int, allowed: list[int], seed: int
) -> None:
    values = (torch.randn(VOCABULARY, generator=torch.Generator().manual_seed(seed)) * 5).numpy()
    row = SamplingRow(sampling, mask_of(allowed), noise, [1, 2])
    few = few_allowed(row)
    assert few is not None
    assert few.tolist() == sorted(set(allowed))
    assert sample(spread(few, values[few], VOCABULARY), row) == sample(values, row)


def test_many_tokens_or_no_mask_are_not_few() -> None:
    assert few_allowed(SamplingRow(Sampling())) is None
    assert few_allowed(SamplingRow(Sampling(), mask_of(list(range(FEW + 1)), size=FEW + 40))) is None


# Many tokens, so that there are many blocks -------------------------------------------------------------------------

SIZES = st.sampled_from([1, 63, 64, 65, 127, 128, 500, 1000, 4133])


def kept(values: npt.NDArray[np.float32], sampling: Sampling) -> set[int]:
    """What the filters leave, said the slow way: one after the other on a sorted list."""
    order = sorted(range(len(values)), key=lambda token: (-values[token], token))
    shares = np.exp((values.astype(np.float64) - values.max()) / sampling.temperature)
    order = order[: sampling.top_k or None]
    if sampling.top_p < 1.0:
        before = np.cumsum([0.0, *shares[order][:-1]])
        order = [token for token, sum_before in zip(order, before, strict=True)
                 if sum_before < sampling.top_p * shares[order].sum()]  # fmt: skip
    return {token for token in order if shares[token] >= sampling.min_p}


@settings(deadline=None)
@given(
    st.builds(
        Sampling,
        temperature=st.sampled_from([0.3, 1.0, 2.5]),
        top_p=st.sampled_from([1.0, 0.93, 0.21, 1e-9]),
        top_k=st.sampled_from([0, 1, 5, 70, 1000]),
        min_p=st.sampled_from([0.0, 0.053, 0.91]),
    ),
    SIZES,
    st.sampled_from([0.0, 0.1, 1.0, 5.0]),
    st.integers(0, 2**32 - 1),
)
def test_what_comes_is_what_the_filters_leave(sampling: Sampling, size: int, spread_of: float, seed: int) -> None:
    generator = np.random.default_rng(seed)
    # Rounded, so that some are equal.
    values = (generator.normal(size=size) * spread_of).round(1).astype(np.float32)
    left = kept(values, sampling)
    assert {sample(values, SamplingRow(sampling, noise=RandomStream(at).bits(0))) for at in range(20)} <= left


@pytest.mark.slow
@pytest.mark.parametrize(
    "sampling",
    [
        Sampling(1.0),
        Sampling(0.7, top_k=40),
        Sampling(1.3, top_p=0.6),
        Sampling(1.0, min_p=0.1),
        Sampling(1.5, top_k=60, top_p=0.8, min_p=0.05),
    ],
    ids=str,
)
@pytest.mark.parametrize("size", [200, 1003])
def test_draws_pass_a_chi_squared_test(sampling: Sampling, size: int) -> None:
    values = (np.random.default_rng(size).normal(size=size) * 2).astype(np.float32)
    left = sorted(kept(values, sampling))
    shares = np.exp(values[left].astype(np.float64) / sampling.temperature)
    draws = 20_000
    counts = Counter(sample(values, SamplingRow(sampling, noise=RandomStream(at).bits(0))) for at in range(draws))
    assert set(counts) <= set(left)
    expected = draws * shares / shares.sum()
    # Cells of fewer than five expected draws are put together.
    large = expected >= 5
    found = np.array([counts[token] for token in left], dtype=np.float64)
    cells = np.append(found[large], found[~large].sum()), np.append(expected[large], expected[~large].sum())
    statistic = sum((a - b) ** 2 / b for a, b in zip(*cells, strict=True) if b > 0)
    freedom = int(large.sum()) - 1 + bool((~large).any())
    # Wilson and Hilferty; 4.3 standard deviations: one in 100,000 fails by chance, and these draws are fixed.
    assert statistic <= freedom * (1 - 2 / (9 * freedom) + 4.3 * math.sqrt(2 / (9 * freedom))) ** 3


@settings(deadline=None)
@given(SIZES, st.sampled_from([0.0, 1.0, 9.0]), NOISE, st.sampled_from([0.2, 1.0, 3.0]))
def test_blocks_that_are_not_computed_could_not_have_won(
    size: int, spread_of: float, noise: int, temperature: float
) -> None:
    values = (np.random.default_rng(noise % 1000).normal(size=size) * spread_of).astype(np.float32)
    blocks = max(1, size // DEPTH)
    shares = np.exp((values - values.max()).astype(np.float64) / temperature)
    rates = np.bincount(np.arange(size) % blocks, shares)
    block = int((rates / times(noise, np.arange(blocks) + (1 << 32))).argmax())
    tokens = np.arange(block, size, blocks)
    assert race(values, temperature, noise) == tokens[(shares[tokens] / times(noise, tokens)).argmax()]
