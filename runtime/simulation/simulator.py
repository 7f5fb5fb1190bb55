"""Caches without a model: replay the calls of a program against a cache and count what it would have saved.

Beside any cache stands Belady's optimum, which knows the future: of all tokens it evicts the one whose next use is
farthest (Belady, "A study of replacement algorithms for a virtual-storage computer", 1966).
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from promptlang.runtime.cache.prefix_cache import AnyNode, PrefixCache, TokenIds
from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import Slots

_NOTHING: TokenIds = np.empty(0, np.int32)


@dataclass(frozen=True)
class NextRead:
    """What a program knows after a call: when it will read a prefix of that call again.

    Attributes:
        name: the prefix's name in the program; a later statement about the same name replaces this one.
        length: tokens of the prefix.
        at: when, in a unit all statements share; None: never again.
    """

    name: Hashable
    length: int
    at: int | None


@dataclass(frozen=True)
class Call:
    """One model call.

    Attributes:
        prompt: int32 [N], what the model reads.
        answer: int32 [M], what it writes; it is cached too.
        next_reads: what the program knows after it.
    """

    prompt: TokenIds
    answer: TokenIds = field(default_factory=lambda: _NOTHING)
    next_reads: tuple[NextRead, ...] = ()

    @property
    def tokens(self) -> TokenIds:
        """Prompt and answer, int32 [N + M]."""
        return np.concatenate([self.prompt, self.answer])


@dataclass
class Replay:
    """What a cache did for a list of calls, in tokens.

    Attributes:
        requested_tokens: of all prompts.
        hit_tokens: of these, found in the cache.
        evicted_tokens: given up for room.
    """

    requested_tokens: int = 0
    hit_tokens: int = 0
    evicted_tokens: int = 0

    @property
    def hit_rate(self) -> float:
        """Hit tokens a requested token."""
        return self.hit_tokens / self.requested_tokens if self.requested_tokens else 0.0


def replay(cache: PrefixCache[AnyNode], calls: Iterable[Call]) -> Replay:
    """Run calls, one after the other, against a cache that knows only what it has seen.

    Args:
        cache: with a budget of `cache.allocator.size` tokens.
        calls: in order.

    Raises:
        ValueError: a call is larger than the budget.
    """
    result = Replay()
    for call in calls:
        _serve(cache, call, result)
    return result


def replay_program(tree: RadixTree, calls: Iterable[Call]) -> Replay:
    """Run calls as `replay` does, and tell the tree after each what the program knows. An end of which it says nothing
    is one that nothing can reach any more.

    Raises:
        ValueError: a call is larger than the budget.
    """
    result = Replay()
    expected: dict[Hashable, tuple[RadixNode, int]] = {}
    for call in calls:
        end = _serve(tree, call, result)
        tree.hold(end)
        for read in call.next_reads:
            if read.name in expected:
                tree.settle(*expected.pop(read.name))
            if read.at is not None:
                node = tree.match(call.tokens, limit=read.length).node
                tree.expect(node, read.at)
                expected[read.name] = node, read.at
        tree.drop(end)
    return result


def _serve(cache: PrefixCache[AnyNode], call: Call, result: Replay) -> AnyNode:
    """One call's life in the cache; returns where its answer ends."""
    tokens = call.tokens
    node, length = cache.match(tokens)
    cache.lock(node)
    result.requested_tokens += len(call.prompt)
    result.hit_tokens += min(length, len(call.prompt))
    slots = _room(cache, len(tokens) - length, result)
    end = cache.insert(node, tokens[length:], slots).node
    cache.unlock(node)
    return end


def _room(cache: PrefixCache[AnyNode], count: int, result: Replay) -> Slots:
    pool = cache.allocator
    if count > pool.available:
        result.evicted_tokens += cache.evict(count - pool.available)
    slots = pool.allocate(count)
    if slots is None:
        raise ValueError(f"{count} more tokens do not fit into a budget of {pool.size}")
    return slots


def footprint(calls: Iterable[Call]) -> int:
    """Distinct tokens in the trie of all calls, answers included: the budget at which nothing is ever evicted."""
    return 1 + max((int(path.max(initial=-1)) for path in _trie_paths(calls)), default=-1)


def belady(calls: Sequence[Call], budget: int) -> Replay:
    """What the best possible cache does: one that knows all calls beforehand.

    Args:
        calls: in order.
        budget: tokens the cache holds, those of the running call included.

    Raises:
        ValueError: a call is larger than the budget.
    """
    paths = _trie_paths(calls)
    next_uses = _next_uses(paths)
    result = Replay()
    cached: dict[int, int] = {}
    queue: list[tuple[int, int, int]] = []
    for call, path, next_use in zip(calls, paths, next_uses, strict=True):
        if len(path) > budget:
            raise ValueError(f"a call of {len(path)} tokens does not fit into a budget of {budget}")
        known = sum(token in cached for token in path.tolist())
        result.requested_tokens += len(call.prompt)
        result.hit_tokens += min(known, len(call.prompt))
        cached.update(zip(path.tolist(), next_use.tolist(), strict=True))
        while len(cached) > budget:
            negated, _, token = heappop(queue)
            if cached.get(token) == -negated:
                del cached[token]
                result.evicted_tokens += 1
        for depth, (token, at) in enumerate(zip(path.tolist(), next_use.tolist(), strict=True)):
            heappush(queue, (-at, -depth, token))
    return result


def _trie_paths(calls: Iterable[Call]) -> list[TokenIds]:
    """For each call the numbers of its tokens in the trie of all calls: equal numbers mean equal prefixes."""
    edges: dict[tuple[int, int], int] = {}
    paths: list[TokenIds] = []
    for call in calls:
        node, path = -1, []
        for token in call.tokens.tolist():
            node = edges.setdefault((node, token), len(edges))
            path.append(node)
        paths.append(np.array(path, np.int32))
    return paths


def _next_uses(paths: Sequence[TokenIds]) -> list[TokenIds]:
    """For each call and token, the next call that reads it, or the number of calls where none does."""
    size = 1 + max((int(path.max(initial=-1)) for path in paths), default=-1)
    upcoming = np.full(size, len(paths), np.int32)
    found: list[TokenIds] = []
    for index in range(len(paths) - 1, -1, -1):
        found.append(upcoming[paths[index]])
        upcoming[paths[index]] = index
    return found[::-1]
