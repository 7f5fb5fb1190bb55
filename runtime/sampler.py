"""Choosing the next tokens. Each row's choice depends on that row alone, never on its neighbours."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from promptlang.grammar.constraint import Mask


@dataclass(frozen=True)
class Sampling:
    """How a token is chosen.

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
        uniform: the random number in [0, 1) that decides; unused at temperature 0.
        history: tokens that the repetition penalty looks back on.
    """

    sampling: Sampling
    mask: Mask | None = None
    uniform: float = 0.0
    history: Sequence[int] = ()


def sample(logits: torch.Tensor, rows: Sequence[SamplingRow]) -> tuple[list[int], list[float]]:
    """Choose one token a row.

    Args:
        logits: float32 [R, vocabulary].
        rows: R of them.

    Returns:
        The tokens, and the natural log-probability of each under the model's own distribution (temperature 1,
        no mask).
    """
    tokens, logprobs = [], []
    for values, row in zip(logits, rows, strict=True):
        token = _choose(values, row)
        tokens.append(token)
        logprobs.append(float(values[token] - values.logsumexp(0)))
    return tokens, logprobs


def _choose(logits: torch.Tensor, row: SamplingRow) -> int:
    sampling = row.sampling
    if row.history and sampling.repetition_penalty != 1.0:
        logits = _penalise(logits, row.history, sampling.repetition_penalty)
    if row.mask is None:
        return _choose_among(logits, row)
    allowed = _allowed(row.mask, len(logits), logits.device)
    return int(allowed[_choose_among(logits[allowed], row)])


def _penalise(logits: torch.Tensor, history: Sequence[int], penalty: float) -> torch.Tensor:
    seen = torch.tensor(sorted(set(history)), device=logits.device)
    values = logits[seen]
    return logits.index_copy(0, seen, torch.where(values > 0, values / penalty, values * penalty))


def _allowed(mask: Mask, vocab_size: int, device: torch.device) -> torch.Tensor:
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little")[:vocab_size]
    allowed = np.flatnonzero(bits)
    if not len(allowed):
        raise ValueError("the mask allows no token")
    return torch.from_numpy(allowed).to(device)


def _choose_among(logits: torch.Tensor, row: SamplingRow) -> int:
    """Index of the choice, by inverting the cumulative distribution."""
    sampling = row.sampling
    if sampling.temperature == 0.0:
        return int(logits.argmax())
    probabilities = _keep_likely(_softmax(logits, sampling.temperature), sampling)
    cumulative = probabilities.cumsum(0)
    index = int(torch.searchsorted(cumulative, row.uniform * float(cumulative[-1]), right=True))
    return min(index, _last_positive(probabilities))


def _softmax(logits: torch.Tensor, temperature: float) -> torch.Tensor:
    # The largest becomes 0 before the division, so that a tiny temperature overflows to -inf and not to inf.
    return ((logits - logits.max()).double() / temperature).softmax(0)


def _keep_likely(probabilities: torch.Tensor, sampling: Sampling) -> torch.Tensor:
    """The distribution with its unlikely tokens set to zero, not normalised again."""
    if 0 < sampling.top_k < len(probabilities):
        kept = probabilities.topk(sampling.top_k)
        probabilities = torch.zeros_like(probabilities).scatter_(0, kept.indices, kept.values)
    if sampling.min_p > 0.0:
        probabilities = probabilities.where(probabilities >= sampling.min_p * probabilities.max(), 0.0)
    if sampling.top_p < 1.0:
        likely, indices = probabilities.sort(descending=True, stable=True)
        before = likely.cumsum(0) - likely
        likely = likely.where(before < sampling.top_p * float(likely.sum()), 0.0)
        probabilities = torch.zeros_like(probabilities).scatter_(0, indices, likely)
    return probabilities


def _last_positive(probabilities: torch.Tensor) -> int:
    return int(probabilities.nonzero()[-1])
