"""Which option wins: the four rules, as pure functions of token log-probabilities.

Options are token sequences; `logprobs[i]` is float64 [tokens of option i], or None where the option was given up.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from promptlang.grammar.vocabulary import Vocabulary
from promptlang.runtime.backend import Rule
from promptlang.runtime.scoring import OptionNode, build_trie, walk

Options: TypeAlias = tuple[tuple[int, ...], ...]
Logprobs: TypeAlias = Sequence[npt.NDArray[np.float64] | None]


@dataclass(frozen=True)
class Selection:
    """An option chosen.

    Attributes:
        index: the winner.
        scores: one number an option by the rule; -inf where it was given up.
        probs: the softmax of the scores; under `sum`, the model's own distribution conditioned on the options.
    """

    index: int
    scores: list[float]
    probs: list[float]


KEPT = 1024
"""Lists of options whose tokens are kept in memory."""


@lru_cache(KEPT)
def encode_options(texts: tuple[str, ...], vocabulary: Vocabulary) -> Options:
    """The tokens of options; kept, for whoever asks again.

    Args:
        texts: of the options.
        vocabulary: of the model.
    """
    return tuple(tuple(vocabulary.encode(text)) for text in texts)


def scores(rule: Rule, options: Options, logprobs: Logprobs, prior: Logprobs | None = None) -> list[float]:
    """One number an option.

    Args:
        rule: `sum`: the log-probability of the option, where one that others extend counts only what does not go on
            as they do; `mean`: the mean token log-probability; `prior`: the mean less the same option's mean after
            an empty prompt; `greedy`: as `sum` along the path that is picked token by token, -inf for all others.
        prior: the log-probabilities after an empty prompt, for `prior`.

    Returns:
        float scores, -inf for an option that was given up or can't happen.
    """
    if rule == "mean":
        return [_mean(values) for values in logprobs]
    if rule == "prior":
        assert prior is not None
        return [_mean(here) - _mean(empty) for here, empty in zip(logprobs, prior, strict=True)]
    events = _events(options, logprobs)
    if rule == "greedy":
        winner = _greedy(options, logprobs)
        return [score if index == winner else -np.inf for index, score in enumerate(events)]
    return events


def choose_option(values: Sequence[float], temperature: float, uniform: float) -> Selection:
    """The best option (ties: the first), or one drawn by the softmax of the scores over `temperature`.

    Args:
        values: scores, at least one of them finite.
        temperature: 0 takes the best.
        uniform: a number in [0, 1) for the draw.
    """
    array = np.asarray(values, dtype=np.float64)
    index = int(array.argmax())
    if temperature > 0:
        cumulative = np.cumsum(_softmax(array / temperature))
        index = min(int(np.searchsorted(cumulative, uniform * cumulative[-1], side="right")), len(array) - 1)
    return Selection(index, array.tolist(), _softmax(array).tolist())


def _softmax(values: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    weights = np.exp(values - values.max())
    return np.asarray(weights / weights.sum())


def _mean(values: npt.NDArray[np.float64] | None) -> float:
    return -np.inf if values is None else float(values.mean())


def _total(values: npt.NDArray[np.float64] | None) -> float:
    return -np.inf if values is None else float(values.sum())


def _events(options: Options, logprobs: Logprobs) -> list[float]:
    """log P(this option and none that extends it): its own probability less that of its nearest extensions."""
    result = [_total(values) for values in logprobs]
    totals = list(result)
    for node in walk(build_trie(options)):
        if node.option is not None and node.children:
            extensions = [totals[index] for index in _nearest(node)]
            taken = (
                sum(np.exp(total - totals[node.option]) for total in extensions)
                if np.isfinite(totals[node.option])
                else 0.0
            )
            result[node.option] = totals[node.option] + np.log1p(-taken) if taken < 1.0 else -np.inf
    return result


def _nearest(node: OptionNode) -> list[int]:
    """The options right below a node: those with no other option between."""
    found = []
    stack = list(node.children.values())
    while stack:
        top = stack.pop()
        if top.option is not None:
            found.append(top.option)
        else:
            stack.extend(top.children.values())
    return found


def _greedy(options: Options, logprobs: Logprobs) -> int:
    """Walk down the trie: at each node the likeliest token, or stop where an option ends and not going on is
    likelier."""
    node, depth = build_trie(options), 0
    while node.children:
        heads = []
        for child in node.children.values():
            values = logprobs[next(inner.option for inner in walk(child) if inner.option is not None)]
            assert values is not None
            heads.append((float(values[depth]), child))
        best, child = max(heads, key=lambda head: head[0])
        if node.option is not None and 1.0 - sum(np.exp(head) for head, _ in heads) > np.exp(best):
            return node.option
        node, depth = child, depth + len(child.tokens)
    assert node.option is not None
    return node.option
