"""Choosing the next tokens. Each row's choice depends on that row alone, never on its neighbours.

In numpy, row by row: a row of logits fits the processor's cache, and waking threads for it costs more than
they save.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from promptlang.grammar.vocabulary import Mask, allows

Values = npt.NDArray[np.float32]
FewTokens = npt.NDArray[np.int64]
"""Tokens that are looked at one by one."""


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
    return _draw(_filtered(_weights(values, sampling.temperature), sampling), row.noise)


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


def _masked(values: Values, mask: Mask) -> Values:
    allowed = np.unpackbits(mask.view(np.uint8), bitorder="little")[: len(values)].view(np.bool_)
    if not allowed.any():
        raise ValueError("the mask allows no token")
    return np.where(allowed, values, np.float32(-np.inf))


def _weights(values: Values, temperature: float) -> Values:
    """Probabilities up to a factor; the largest is 1."""
    # The largest becomes 0 before the division: a tiny temperature then overflows to -inf, which is right,
    # not to inf.
    with np.errstate(over="ignore"):
        weights: Values = np.exp((values - values.max()) / np.float32(temperature))
    return weights


def _filtered(weights: Values, sampling: Sampling) -> Values:
    """Weights with what the filters drop set to zero, in place."""
    if 0 < sampling.top_k < len(weights):
        _keep_likeliest(weights, sampling.top_k)
    if sampling.top_p < 1.0:
        sums = np.sort(weights)[::-1].cumsum(dtype=np.float64)
        needed = 1 + int(np.searchsorted(sums, sampling.top_p * sums[-1]))
        _keep_likeliest(weights, min(needed, len(weights)))
    if sampling.min_p > 0.0:
        weights[weights < sampling.min_p] = 0.0
    return weights


def _keep_likeliest(weights: Values, count: int) -> None:
    """Set all but so many weights to zero, in place; of equals, those with the lower ids stay."""
    least = np.partition(weights, -count)[-count]
    equal = np.flatnonzero(weights == least)
    weights[equal[count - int(np.count_nonzero(weights > least)) :]] = 0.0
    weights[weights < least] = 0.0


_NEGLIGIBLE = 1e-12
"""Tokens this much less likely than the likeliest are never drawn."""


def _draw(weights: Values, noise: int) -> int:
    """A token in proportion to the weights, by the Gumbel-max trick (Gumbel 1954; Maddison et al., arXiv:1411.0030).

    Each token's noise depends on the token alone, so that a change in the last bits of the logits, as other batch
    mates may cause, turns the draw only where two tokens are as good as tied. Along a cumulative distribution it
    would add up.
    """
    tokens = np.flatnonzero(weights > _NEGLIGIBLE)
    scores = np.log(weights[tokens].astype(np.float64)) - np.log(-np.log(_uniforms(noise, tokens)))
    return int(tokens[scores.argmax()])


def _uniforms(noise: int, tokens: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """A number in (0, 1) for each token: SplitMix64 (Steele et al. 2014) of the bits and the token."""
    state = tokens.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(noise)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return ((state >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
