"""Choosing the next tokens. Each row's choice depends on that row alone, never on its neighbours.

In numpy, row by row: a row of logits fits the processor's cache, and waking threads for it costs more than
they save.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from promptlang.grammar.vocabulary import Mask, allows
from promptlang.runtime.race import FewTokens, Floor, Values, peaks, race, weights


@dataclass(frozen=True)
class Sampling:
    """How a token is chosen. The filters apply in the order `top_k`, `top_p`, `min_p`, each to what the last
    one left. Where `top_k` and `top_p` cut between equals, those with the lower ids stay.

    Attributes:
        temperature: divides the logits; 0 takes the most likely token (of equals, the one with the lowest
            id).
        top_p: keep the smallest set of most likely tokens whose probabilities reach this sum (Holtzman et
            al., 2020).
        top_k: keep this many most likely tokens; 0 keeps all.
        min_p: keep tokens at least this fraction as likely as the most likely one (Nguyen et al., 2024).
        repetition_penalty: divides positive and multiplies negative logits of tokens written before (Keskar
            et al., 2019).
    """

    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0


@dataclass(frozen=True)
class SamplingRow:
    """What one row is sampled with.

    Attributes:
        sampling: how.
        mask: the allowed tokens; None allows all.
        noise: 64 random bits that decide; unused at temperature 0.
        history: tokens that the repetition penalty looks back on.
    """

    sampling: Sampling
    mask: Mask | None = None
    noise: int = 0
    history: Sequence[int] = ()


def sample(values: Values, row: SamplingRow) -> int:
    """One token.

    Args:
        values: logits, float32 [vocabulary].
        row: how.

    Raises:
        ValueError: the mask allows no token.
    """
    sampling = row.sampling
    if row.history and sampling.repetition_penalty != 1.0:
        values = _penalised(values, row.history, sampling.repetition_penalty)
    if sampling.temperature == 0.0:
        likeliest = int(values.argmax())
        if row.mask is None or allows(row.mask, likeliest):
            return likeliest
    if row.mask is not None:
        values = _masked(values, row.mask)
    if sampling.temperature == 0.0:
        return int(values.argmax())
    return _draw(values, sampling, row.noise)


def logprob_of(token: int, values: Values) -> float:
    """Natural log-probability of a token under the model's own distribution (temperature 1, no mask).

    Args:
        token: which.
        values: logits, float32 [vocabulary].
    """
    largest = values.max()
    return float(values[token] - largest - np.log(np.exp(values - largest).sum()))


FEW = 256
"""Of so many tokens, the logits are computed one by one."""


def few_allowed(row: SamplingRow) -> FewTokens | None:
    """The tokens a mask allows, int64, where they are few; None where there are many, or none."""
    if row.mask is None or not 0 < int(np.bitwise_count(row.mask.view(np.uint32)).sum()) <= FEW:
        return None
    return np.flatnonzero(np.unpackbits(row.mask.view(np.uint8), bitorder="little"))


def spread(tokens: FewTokens, values: Values, size: int) -> Values:
    """Logits of some tokens as those of all, float32 [size]; the others are impossible."""
    everything = np.full(size, -np.inf, dtype=np.float32)
    everything[tokens] = values
    return everything


def _penalised(values: Values, history: Sequence[int], penalty: float) -> Values:
    seen = np.unique(np.asarray(history))
    result = values.copy()
    result[seen] = np.where(values[seen] > 0, values[seen] / penalty, values[seen] * penalty)
    return result


_PENALTIES = np.where(
    np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1, bitorder="little"),
    np.float32(0),
    np.float32(-np.inf),
)
"""What each byte of a mask adds to the logits of its eight tokens."""


def _masked(values: Values, mask: Mask) -> Values:
    if not mask.any():
        raise ValueError("the mask allows no token")
    penalised: Values = _PENALTIES.take(mask.view(np.uint8), axis=0).reshape(-1)[: len(values)]
    penalised += values
    return penalised


def _draw(values: Values, sampling: Sampling, noise: int) -> int:
    """A token of those that the filters leave: a likeliest part, whose end the highest floor is.

    Where `top_p` ends is not looked for: a token outside is refused, and the next one drawn from those before it, so
    that what comes in the end comes in proportion. FlashInfer does the same on GPUs (arXiv:2501.01005).
    """
    floor = Floor(-np.inf, len(values))
    if 0 < sampling.top_k < len(values):
        floor = _top_k_floor(values, sampling.top_k)
    nucleus = None if sampling.top_p == 1.0 else _Nucleus(values, sampling, floor)
    if sampling.min_p > 0.0:
        least = float(values.max() + np.float32(sampling.temperature * math.log(sampling.min_p)))
        floor = _higher(floor, Floor(least, len(values)))
    attempt = 0
    while True:
        token = race(values, sampling.temperature, noise, floor, attempt)
        if nucleus is None or token in nucleus:
            return token
        floor = Floor(float(values[token]), token)
        attempt += 1


def _higher(one: Floor, other: Floor) -> Floor:
    return max(one, other, key=lambda floor: (floor.value, -floor.token))


def _top_k_floor(values: Values, count: int) -> Floor:
    """Behind so many of the likeliest tokens."""
    # As many blocks as tokens are wanted have a peak at this value or above it, and so as many tokens have, or more.
    greatest = peaks(values)
    pool = greatest if count <= len(greatest) else values
    tokens = np.flatnonzero(values >= np.partition(pool, -count)[-count])
    last = int(tokens[np.argsort(-values[tokens], kind="stable")[count - 1]])
    return Floor(float(values[last]), last + 1)


class _Nucleus:
    """The smallest set of most likely tokens whose probabilities reach `top_p`.

    Args:
        values: logits, float32 [vocabulary].
        sampling: `top_p`, and the temperature that it is meant at.
        floor: which tokens there are.
    """

    def __init__(self, values: Values, sampling: Sampling, floor: Floor) -> None:
        # Without `top_k` all take part; with it, it is worth looking at those alone.
        tokens = None if floor.value == -np.inf else _before(values, floor)
        self._tokens = tokens
        self._values = values if tokens is None else values[tokens]
        self._weights = weights(self._values, values.max(), sampling.temperature)
        self._enough = sampling.top_p * float(self._weights.sum())

    def __contains__(self, token: int) -> bool:
        place = token if self._tokens is None else int(self._tokens.searchsorted(token))
        before = _before(self._values, Floor(float(self._values[place]), place))
        return float(self._weights[before].sum()) < self._enough


def _before(values: Values, floor: Floor) -> FewTokens:
    """The tokens that stand before a place."""
    before = values > floor.value
    before[: floor.token] |= values[: floor.token] == floor.value
    return np.flatnonzero(before)
