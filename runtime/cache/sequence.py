"""One running path of tokens, and the KV slots behind it.

├── in the tree (locked) ──┤── tail: own slots ──┤── not computed yet ──┤
0                          base                  computed               end

In a pass that guesses, all is computed, and behind the end stands the draft: tokens with slots of their own, of which
as many become the sequence's as it comes to hold.
"""

from dataclasses import replace

import numpy as np

from promptlang.runtime.cache.expected_read import ExpectedRead
from promptlang.runtime.cache.kv_cache import KvCache
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.prefix_cache import Namespace, TokenIds
from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.cache.slots import SlotRun, Slots, extended, runs

_EMPTY = np.empty(0, np.int32)


class Sequence:
    """A path of tokens being computed, from position `start` on. `attach` or `branch` makes it ready; `release` ends
    it."""

    def __init__(self, cache: KvCache, tokens: list[int], namespace: Namespace = (), start: int = 0) -> None:
        self.tokens = tokens
        self.start = start
        self._ids = _EMPTY
        self._cache = cache
        self._namespace = namespace
        self._node: RadixNode | None = None
        self._base = start
        self._borrowed = _EMPTY
        self._tail = _EMPTY
        self._tail_runs: tuple[SlotRun, ...] = ()
        self._spare = _EMPTY
        self._cached_runs: tuple[SlotRun, ...] = ()
        self._cached_as: tuple[RadixNode | None, int] = (None, 0)
        self._draft: list[int] = []
        self._draft_slots = _EMPTY

    @property
    def end(self) -> int:
        """The position behind the last token."""
        return self.start + len(self.tokens)

    @property
    def computed(self) -> int:
        """The position up to which the tokens have their KV."""
        return self._base + len(self._tail)

    @property
    def pending(self) -> int:
        """How many tokens still have to go through the model."""
        return self.end - self.computed

    @property
    def node(self) -> RadixNode | None:
        """Where the cached part ends in the tree."""
        return self._node

    def next_key(self) -> tuple[RadixNode | None, int]:
        """Which computation comes next: two sequences with one key are about to compute the same."""
        return self._node, self.tokens[self.computed - self.start]

    def expect(self, at: int) -> ExpectedRead:
        """Tell the tree that what `attach` would find now will be read at `at`."""
        tree = self._cache.tree
        return ExpectedRead(tree, tree.find(self._keys(0, self.end - 1), self._namespace), at)

    def attach(self) -> None:
        """Find the longest cached prefix and lock it. The last token is always computed: its logits are needed."""
        tree = self._cache.tree
        limit = self.end - 1 if self._cache.shares else 0
        match = tree.match(self._keys(0, limit), self._namespace)
        tree.lock(match.node)
        self._node, self._base = match.node, match.length

    def branch(self, tokens: list[int]) -> "Sequence":
        """A sequence that goes on from here with `tokens`; this one must outlive it."""
        assert self._node is not None
        self.commit()
        twin = Sequence(self._cache, tokens, self._namespace, self.computed)
        twin._borrowed = np.concatenate([self._borrowed, self._tail])
        twin._node = self._node
        self._cache.tree.lock(self._node)
        return twin

    def attach_more(self) -> None:
        """Find and lock what else of the tokens is cached, all of them where nobody needs their logits."""
        if not self._cache.shares:
            return
        assert self._node is not None
        tree = self._cache.tree
        node = tree.follow(self._node, self._keys(self._base, self.end))
        tree.lock(node)
        tree.unlock(self._node)
        self._base += node.end - self._node.end
        self._node = node

    @property
    def ids(self) -> TokenIds:
        """All tokens, int32."""
        return self._keys(0, self.end)

    def _keys(self, start: int, end: int) -> TokenIds:
        """The tokens from position `start` to `end`. Each is converted once: a prompt is looked up many times."""
        known, wanted = len(self._ids), end - self.start
        if wanted > known:
            self._ids = np.concatenate([self._ids, np.array(self.tokens[known:wanted], dtype=np.int32)])
        return self._ids[start - self.start : wanted]

    def next_lane(self, budget: int, growth: int = 0) -> Lane | None:
        """The next tokens to compute, with slots of their own; None when there is no room.

        Args:
            budget: the most tokens.
            growth: as in `reserve`.
        """
        start = self.computed
        count = min(self.pending, budget)
        context = self.context(start)
        slots = self.reserve(count, growth)
        if slots is None:
            return None
        return Lane(
            tokens=self.tokens[start - self.start : start - self.start + count],
            start=start,
            slots=slots,
            context=context,
            wants="last" if start + count == self.end else "none",
        )

    @property
    def draft_room(self) -> int:
        """For how many tokens of a draft slots are reserved."""
        return len(self._draft_slots)

    def reserve_draft(self, count: int) -> bool:
        """Reserve slots for a draft, where that many are free; nothing is evicted for a guess."""
        missing = count - len(self._spare)
        if missing > 0 and (missing > self._cache.allocator.available or not self._grow(missing, 0)):
            return False
        self._draft_slots, self._spare = self._spare[:count], self._spare[count:]
        return True

    def lane_ahead(self, tokens: list[int], at: int) -> Lane:
        """Some tokens behind the end, computed on trial.

        Args:
            tokens: as many as slots are reserved for.
            at: how many of these tokens come before.
        """
        start = self.end + at
        slots = self._draft_slots[at : at + len(tokens)]
        return Lane(tokens, start, slots, self.context(start))

    def drafted(self, lane: Lane, tokens: list[int]) -> Lane:
        """A lane that goes up to the end, with a draft behind it, for which slots are reserved."""
        self._draft = tokens
        return replace(
            lane,
            tokens=[*lane.tokens, *tokens],
            slots=np.concatenate([lane.slots, self._draft_slots[: len(tokens)]]),
            drafted=len(tokens),
        )

    def confirm(self) -> int:
        """Keep as much of the draft as the tokens, of which there are more now, agree with; gives how much that is."""
        if not self._draft:
            return 0
        new = self.tokens[self.computed - self.start :]
        agree = next((at for at, pair in enumerate(zip(new, self._draft, strict=False)) if pair[0] != pair[1]), None)
        count = min(len(new), len(self._draft)) if agree is None else agree
        self._add_to_tail(self._draft_slots[:count])
        self._draft, self._draft_slots = self._draft[count:], self._draft_slots[count:]
        return count

    def drop_draft(self) -> None:
        """Let go of what is left of the draft, and of its slots."""
        if not len(self._draft_slots):
            return
        self._spare = np.concatenate([self._draft_slots, self._spare])
        self._draft, self._draft_slots = [], _EMPTY

    def reserve(self, count: int, growth: int = 0) -> Slots | None:
        """Slots for the next `count` tokens, now part of the tail; None when there is no room.

        Args:
            count: tokens about to be computed.
            growth: slots to take along, where there is room, for tokens that follow.
        """
        if count > len(self._spare) and not self._grow(count - len(self._spare), growth):
            return None
        slots, self._spare = self._spare[:count], self._spare[count:]
        self._add_to_tail(slots)
        return slots

    def _add_to_tail(self, slots: Slots) -> None:
        self._tail = np.concatenate([self._tail, slots])
        self._tail_runs = extended(self._tail_runs, slots)

    def _grow(self, count: int, growth: int) -> bool:
        last = self._spare[-1:] if len(self._spare) else self._tail[-1:]
        after = int(last[0]) if len(last) else None
        more = None
        if growth > count and self._cache.allocator.available > 2 * growth:
            more = self._cache.allocate(growth, after)
        if more is None:
            more = self._cache.allocate(count, after)
        if more is None:
            return False
        self._spare = np.concatenate([self._spare, more])
        return True

    def context(self, end: int) -> tuple[SlotRun, ...]:
        """The KV slots of all positions before `end`, as contiguous runs in order."""
        own = self._tail_runs
        if end != self.computed:
            own = runs(np.concatenate([self._tail, self._draft_slots])[: end - self._base])
        return (*self._runs_of_cached(), *runs(self._borrowed), *own)

    def _runs_of_cached(self) -> tuple[SlotRun, ...]:
        """Those of the part in the tree, which change only where an edge is split."""
        assert self._node is not None
        tree = self._cache.tree
        if self._cached_as != (self._node, tree.splits):
            self._cached_as = self._node, tree.splits
            self._cached_runs = tuple(run for node in tree.path(self._node) for run in node.runs)
        return self._cached_runs

    def commit(self) -> None:
        """Give the computed tail to the tree, so that others share it."""
        if not self._cache.shares or not len(self._tail):
            return
        assert self._node is not None
        tree = self._cache.tree
        inserted = tree.insert(self._node, self._keys(self._base, self.computed), self._tail)
        tree.lock(inserted.node)
        tree.unlock(self._node)
        self._base, self._node = self.computed, inserted.node
        self._tail, self._tail_runs = _EMPTY, ()

    def truncate(self, end: int) -> None:
        """Forget all tokens from position `end` on. Own slots are free again; what the tree holds stays cached
        there."""
        keep = max(0, min(end, self.computed) - self._base)
        self._cache.allocator.free(self._tail[keep:])
        self._tail = self._tail[:keep]
        self._tail_runs = runs(self._tail)
        self._ids = self._ids[: end - self.start]
        del self.tokens[end - self.start :]

    def release(self) -> None:
        """Give back the lock and every slot of its own."""
        if self._node is None:
            return
        self.drop_draft()
        self._cache.allocator.free(np.concatenate([self._tail, self._spare]))
        self._tail = self._spare = self._borrowed = _EMPTY
        self._tail_runs = ()
        self._cached_as = None, 0  # what isn't locked may be shortened
        self._cache.tree.unlock(self._node)
        self._node, self._base = None, self.start
