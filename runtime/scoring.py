"""Options being scored: a trie of token sequences behind one prompt, a level of it in one batch.

The prompt's last row scores every option's first token, so options that differ at once cost no pass of their own.
What options share is computed once; an option's last token is never computed at all, for nothing follows it. Where only
the best option is wanted, the likeliest go first, and what can't win any more is given up (branch and bound; Land and
Doig, 1960).

Each node of the trie is scored once, whatever happens: its log-probabilities stay when its KV goes. Where room is
short, the trie is taken depth first, and the KV of all other branches may go; what a later one needs of it is found in
the cache or computed again.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import torch

from promptlang.runtime.cache.kv_cache import KvCache
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.sequence import Sequence
from promptlang.runtime.prompt_trie import PromptEdge
from promptlang.runtime.requests import Answer, ScoredOptions, ScoreOptions

Logprobs = npt.NDArray[np.float64]

LONGEST_RUN = 64
"""Tokens of one node that go through the model at once: a row of logits is kept for each."""

FIRST_PROBE = 8
"""Option tokens of the first pass that looks for a winner; each pass after it takes twice as many. Few, for what they
show may save all others; more each time, so that a long search has few passes."""


@dataclass(eq=False)
class OptionNode:
    """A run of tokens that the same options share.

    Attributes:
        tokens: the run.
        option: index of the option that ends here, if one does.
        children: by first token.
        parent: None at the root, whose run is empty.
        logprobs: float64 [tokens], once known.
        total: the sum of log-probabilities from the root to the end of this run, once known.
        sequence: the run's KV, while something may still follow it.
        place: where the run ends in the usage's trie of prompts, once computed.
    """

    tokens: list[int]
    option: int | None = None
    children: "dict[int, OptionNode]" = field(default_factory=dict)
    parent: "OptionNode | None" = None
    logprobs: Logprobs = field(default_factory=lambda: np.empty(0))
    total: float = 0.0
    sequence: Sequence | None = None
    place: PromptEdge | None = None

    @property
    def computes(self) -> list[int]:
        """The tokens whose own logits are needed: all but a last one that nothing follows."""
        return self.tokens if self.children else self.tokens[:-1]


def build_trie(options: tuple[tuple[int, ...], ...]) -> OptionNode:
    """The compressed trie of some token sequences (none empty, no two equal)."""
    root = OptionNode([])
    for index, option in enumerate(options):
        node, rest = root, list(option)
        while rest and rest[0] in node.children:
            child = node.children[rest[0]]
            shared = _common(child.tokens, rest)
            if shared < len(child.tokens):
                child = _split(child, shared)
            node, rest = child, rest[shared:]
        if rest:
            node.children[rest[0]] = OptionNode(rest, parent=node)
            node = node.children[rest[0]]
        node.option = index
    return root


def _common(left: list[int], right: list[int]) -> int:
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))


def _split(node: OptionNode, at: int) -> OptionNode:
    assert node.parent is not None
    upper = OptionNode(node.tokens[:at], parent=node.parent)
    node.parent.children[upper.tokens[0]] = upper
    node.tokens, node.parent = node.tokens[at:], upper
    upper.children[node.tokens[0]] = node
    return upper


def _cut_long_runs(trie: OptionNode) -> None:
    for node in walk(trie):
        while len(node.tokens) > LONGEST_RUN:
            _split(node, LONGEST_RUN)


def walk(node: OptionNode) -> Iterator[OptionNode]:
    """The nodes below `node`, itself included, parents first."""
    stack = [node]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(reversed(top.children.values()))


class ScoreJob:
    """One `ScoreOptions` request under way."""

    def __init__(self, answer: Answer[ScoredOptions], request: ScoreOptions, cache: KvCache) -> None:
        self.answer = answer
        self._request = request
        self.sequence = Sequence(cache, list(request.prompt.flush()), request.prompt.namespace)
        self.options = request.options
        self._trie = build_trie(request.options)
        _cut_long_runs(self._trie)
        self._frontier: list[OptionNode] = []
        self._planned: list[OptionNode] = []
        self._restored: list[Sequence] = []
        self._is_opened = False
        self._is_short_of_room = False
        self._live: list[OptionNode] = []
        self._best = -np.inf
        self._probe = FIRST_PROBE
        self._trie.place = request.usage.ask(self.sequence.tokens)

    @property
    def is_decoding(self) -> bool:
        return not self.sequence.pending

    @property
    def unread(self) -> int:
        """Tokens of the prompt that were neither computed nor found in the cache."""
        return 0 if self._is_opened else self.sequence.pending

    @property
    def room_needed(self) -> int:
        """Slots it takes to get going, with nothing of it cached."""
        return self.sequence.pending + 1

    # What goes through the model ---------------------------------------------------------------------

    def next_lanes(self, budget: int) -> list[Lane] | None:
        """The prompt first, then as much of the trie's frontier as `budget` tokens allow; None when there is no
        room."""
        if self.sequence.pending:
            lane = self._plan_prompt(budget)
            return None if lane is None else [lane]
        return self._plan_frontier(budget)

    def _plan_prompt(self, budget: int) -> Lane | None:
        lane = self.sequence.next_lane(budget)
        if lane is not None:
            self._request.usage.computed_tokens += len(lane.tokens)
        return lane

    def _plan_frontier(self, budget: int) -> list[Lane] | None:
        if self._request.best_only:
            budget = min(budget, self._probe)
        lanes = self._lanes(budget)
        if not lanes:
            self._release_all_but(self._frontier[:1])
            lanes = self._lanes(budget)
        if not lanes:
            return None
        if self._request.best_only:
            self._probe *= 2
        return lanes

    def _lanes(self, budget: int) -> list[Lane]:
        """As many nodes of the frontier as there is budget and room for, and where the KV before one is gone, that."""
        if self._request.best_only and not self._is_short_of_room:
            self._frontier.sort(key=self._bound, reverse=True)
        self._planned, self._restored = [], []
        lanes: list[Lane] = []
        for node in self._frontier:
            if lanes and len(node.computes) > budget:
                break
            before = self._before(node)
            if before in self._restored:
                continue  # its tokens have no KV before this pass is over
            lane = self._restoring_lane(before, budget) if before.pending else self._scoring_lane(before, node)
            if lane is None:
                self._is_short_of_room = True
                break
            lanes.append(lane)
            budget -= len(lane.tokens)
        return lanes

    def _before(self, node: OptionNode) -> Sequence:
        """The path that ends where this node begins; started anew where it was given back."""
        parent = node.parent
        assert parent is not None
        if parent is self._trie:
            return self.sequence
        if parent.sequence is None:
            parent.sequence = self.sequence.branch([token for above in _path(parent) for token in above.tokens])
            parent.sequence.attach_more()
            self._live.append(parent)
        return parent.sequence

    def _restoring_lane(self, sequence: Sequence, budget: int) -> Lane | None:
        lane = sequence.next_lane(budget)
        if lane is None:
            return None
        self._restored.append(sequence)
        self._request.usage.computed_tokens += len(lane.tokens)
        return replace(lane, wants="none")

    def _scoring_lane(self, before: Sequence, node: OptionNode) -> Lane | None:
        tokens = node.computes
        sequence = before.branch(list(tokens))
        lane = sequence.next_lane(len(tokens))
        if lane is None:
            sequence.release()
            return None
        node.sequence = sequence
        self._planned.append(node)
        self._live.append(node)
        self._count(node, tokens)
        return replace(lane, wants="all")

    def _count(self, node: OptionNode, tokens: list[int]) -> None:
        """A trie token is a prompt token of this call: asked for once, computed once."""
        assert node.parent is not None
        usage = self._request.usage
        usage.requested_tokens += len(tokens)
        usage.computed_tokens += len(tokens)
        node.place = usage.prompts.add(tokens, node.parent.place)

    def computed(self) -> None:
        """The planned tokens have their KV now."""
        self.sequence.commit()
        for node in self._planned:
            assert node.sequence is not None
            node.sequence.commit()
        for sequence in self._restored:
            sequence.commit()

    # What the model answers --------------------------------------------------------------------------

    def accept(self, logits: torch.Tensor) -> None:
        """Take the logits of the planned rows.

        Args:
            logits: float [rows, vocabulary]: the prompt's last row (after a pause once more), or all rows of the
                planned nodes in order.
        """
        normaliser = torch.logsumexp(logits.float(), dim=-1)
        if not self._is_opened:
            self._open(self._trie, logits[-1], normaliser[-1])
        row = 0
        for node in self._planned:
            rows = slice(row, row + len(node.computes))
            self._score_inside(node, logits[rows], normaliser[rows])
            row = rows.stop
        self._move_frontier(self._planned if self._is_opened else [self._trie])
        self._is_opened = True
        self._release_all_but(self._frontier)
        if not self._frontier:
            self._finish()

    def _move_frontier(self, scored: list[OptionNode]) -> None:
        """Put what goes on from these nodes in their place."""
        done = set(scored)
        left = [node for node in self._frontier if node not in done]
        opened = [child for node in scored for child in node.children.values() if child.computes]
        self._frontier = opened + left if self._is_short_of_room else left + opened
        if self._request.best_only:
            self._frontier = [node for node in self._frontier if self.can_win(node)]

    def _release_all_but(self, frontier: list[OptionNode]) -> None:
        """Give back the KV of nodes that nothing in `frontier` goes on from."""
        needed: set[OptionNode] = set()
        for node in frontier:
            above = node.parent
            while above is not None and above not in needed:
                needed.add(above)
                above = above.parent
        for node in self._live:
            if node not in needed:
                _release(node)
        self._live = [node for node in self._live if node.sequence is not None]

    def _open(self, node: OptionNode, logits: torch.Tensor, normaliser: torch.Tensor) -> None:
        """Score the first token of every child from the row of this node's last token."""
        children = list(node.children.values())
        firsts = torch.tensor([child.tokens[0] for child in children])
        for child, value in zip(children, (logits[firsts].float() - normaliser).tolist(), strict=True):
            child.logprobs = np.array([value])
            child.total = node.total + value
            if len(child.tokens) == 1:
                self._settle(child)
        self._settle_extended(node)

    def _score_inside(self, node: OptionNode, logits: torch.Tensor, normaliser: torch.Tensor) -> None:
        """Score the rest of a run from its own rows, and its children from the last of them."""
        rest = torch.tensor(node.tokens[1:], dtype=torch.long)
        inside = logits[torch.arange(len(rest)), rest].float() - normaliser[: len(rest)]
        node.logprobs = np.concatenate([node.logprobs, inside.cpu().double().numpy()])
        node.total += float(inside.double().sum())
        if len(node.tokens) > 1:
            self._settle(node)
        if node.children:
            self._open(node, logits[-1], normaliser[-1])

    def _settle(self, node: OptionNode) -> None:
        if node.option is not None and not node.children:
            self._best = max(self._best, node.total)

    def _settle_extended(self, node: OptionNode) -> None:
        """What goes on from an option takes at most the probability of its first tokens."""
        taken = sum(math.exp(child.logprobs[0]) for child in node.children.values())
        if node.option is not None and taken < 1.0:
            self._best = max(self._best, node.total + math.log1p(-taken))

    def can_win(self, node: OptionNode) -> bool:
        """Whether an option at or below a node may have the highest probability: a path's total only falls as it
        grows.

        Below an option that may still win, everything stays: its own score is what its extensions leave of it.
        """
        return self._bound(node) >= self._best

    def _bound(self, node: OptionNode) -> float:
        """The most that an option at or below this node, or one that it extends, can reach."""
        bound, above = node.total, node.parent
        while above is not None:
            if above.option is not None:
                bound = max(bound, above.total)
            above = above.parent
        return bound

    def _finish(self) -> None:
        usage = self._request.usage
        for node in walk(self._trie):
            usage.option_tokens += len(node.tokens)
            usage.unscored_tokens += len(node.tokens) - len(node.logprobs)
        logprobs = self.logprobs()
        self._request.prompt.hold(self.sequence.node)
        self.release()
        self.answer.finish(ScoredOptions(logprobs))

    def logprobs(self) -> list[Logprobs | None]:
        """What is known of each option; see `ScoredOptions`."""
        found: list[Logprobs | None] = [None] * len(self.options)
        for node in walk(self._trie):
            if node.option is not None:
                found[node.option] = self._option_logprobs(node)
        return found

    def _option_logprobs(self, node: OptionNode) -> Logprobs | None:
        path = _path(node)
        if any(len(above.logprobs) < len(above.tokens) for above in path):
            return None
        return np.concatenate([above.logprobs for above in path])

    def release(self) -> None:
        """Give back everything; what is scored stays, so that `sequence.attach()` resumes it."""
        self._planned, self._restored = [], []
        self._release_all_but([])
        self.sequence.release()


def _path(node: OptionNode) -> list[OptionNode]:
    """The nodes from the root to this one, both included."""
    path = [node]
    while path[-1].parent is not None:
        path.append(path[-1].parent)
    return path[::-1]


def _release(node: OptionNode) -> None:
    assert node.sequence is not None
    node.sequence.release()
    node.sequence = None
