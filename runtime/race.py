"""Drawing one token of many: first a block of tokens, then one in it.

Each contender runs for a time that is exponential with its weight as rate; who is there first is drawn in proportion to
the weights. That is the Gumbel-max trick (Gumbel 1954; Maddison et al., arXiv:1411.0030) with one logarithm fewer. A
contender's time depends on itself and the noise alone, so that a change in the last bits of the logits, as other batch
mates may cause, turns the draw only where two are as good as tied. Along a cumulative distribution it would add up.

Blocks run with the sums of their weights. Most can't win, however their weight is spread over their tokens, so the
exponentials of a few blocks are computed in place of all.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Values = npt.NDArray[np.float32]

FewTokens = npt.NDArray[np.int64]
"""Tokens that are looked at one by one."""

DEPTH = 64
"""Tokens in a block, or a few more."""

_BLOCKS = 1 << 32
"""Where the numbers of blocks begin; those of tokens are smaller."""

_ATTEMPT = 1 << 40
"""How far the numbers of one attempt lie from the next one's."""

_SLACK = 1e-3
"""Bounds are rounded; a block that misses by less may win yet."""


class Floor(NamedTuple):
    """A place in the order of tokens: likelier ones first, and of equals those with lower ids. Who stands before it
    takes part.

    Attributes:
        value: the logit there.
        token: the id there.
    """

    value: float
    token: int

    def leaves_out(self, values: Values, tokens: FewTokens) -> npt.NDArray[np.bool_]:
        """Who takes no part, of the tokens with these values."""
        is_behind: npt.NDArray[np.bool_] = (values < self.value) | ((values == self.value) & (tokens >= self.token))
        return is_behind


def peaks(values: Values) -> Values:
    """The greatest value of each block. Token t is in block t % blocks: blocks lie side by side, which is how
    processors read them.

    Args:
        values: float32 [vocabulary].

    Returns:
        float32 [blocks].
    """
    blocks = max(1, len(values) // DEPTH)
    whole = len(values) // blocks * blocks
    greatest: Values = values[:whole].reshape(-1, blocks).max(0)
    rest = values[whole:]
    np.maximum(greatest[: len(rest)], rest, out=greatest[: len(rest)])
    return greatest


def race(values: Values, temperature: float, noise: int, floor: Floor | None = None, attempt: int = 0) -> int:
    """A token in proportion to exp(value / temperature).

    Args:
        values: float32 [vocabulary]; -inf for what is never drawn.
        temperature: above zero.
        noise: 64 random bits that decide.
        floor: which tokens take part, one at least; None lets all.
        attempt: others are other draws of the same noise.
    """
    floor = floor or Floor(-np.inf, len(values))
    greatest = peaks(values)
    top, blocks, depth = greatest.max(), len(greatest), -(-len(values) // len(greatest))
    arrivals = times(noise, np.arange(blocks) + _BLOCKS + attempt * _ATTEMPT)
    # With its greatest weight alone a block would be there this fast, and with all like that so much faster.
    slowest = weights(greatest, top, temperature) / arrivals
    to_beat = slowest[greatest > floor.value].max(initial=0.0) * (1 - _SLACK)
    running = np.flatnonzero((greatest >= floor.value) & (slowest * depth >= to_beat))
    tokens = running + blocks * np.arange(depth)[:, None]
    rates = _rates(values, tokens, top, temperature, floor)
    fastest = int((rates.sum(0) / arrivals[running]).argmax())
    tokens, rates = tokens[:, fastest], rates[:, fastest]
    return int(tokens[(rates / times(noise, tokens + attempt * _ATTEMPT)).argmax()])


def weights(values: Values, top: np.float32, temperature: float) -> Values:
    """Probabilities up to a factor, that of `top` being 1."""
    # The largest becomes 0 before the division: a tiny temperature then overflows to -inf, which is right, not to inf.
    shares: Values = values - top
    with np.errstate(over="ignore"):
        shares /= np.float32(temperature)
    return np.exp(shares, out=shares)


def _rates(
    values: Values, tokens: FewTokens, top: np.float32, temperature: float, floor: Floor
) -> npt.NDArray[np.float64]:
    """Weights of tokens, 0 for those that take no part or are none."""
    known = values.take(tokens, mode="clip")
    rates = weights(known, top, temperature).astype(np.float64)
    rates[floor.leaves_out(known, tokens) | (tokens >= len(values))] = 0.0
    return rates


def times(noise: int, numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """An exponential random number for each number: SplitMix64 (Steele et al. 2014) of the bits and the number."""
    state = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(noise)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    state ^= state >> np.uint64(31)
    return -np.log(((state >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
