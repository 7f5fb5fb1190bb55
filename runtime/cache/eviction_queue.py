"""Which leaf of the radix tree goes next, found without a look at the others."""

from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

from promptlang.runtime.cache.eviction import Policy
from promptlang.runtime.cache.radix_node import RadixNode, is_evictable_leaf

_Entry: TypeAlias = tuple[tuple[int, ...], int, RadixNode]
"""A node in the queue: its key then, the ticket it got, the node."""

SLACK = 64
"""Void entries that are never worth clearing away."""


class EvictionQueue:
    """Evictable leaves by their keys. A key may rise without notice; when it falls, the node is added again.

    Args:
        policy: gives the keys; what live prompts hold goes after all else.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._heap: list[_Entry] = []
        self._tickets = 0

    def __len__(self) -> int:
        """Entries, the void ones included."""
        return len(self._heap)

    def add(self, node: RadixNode, nodes: int) -> None:
        """Note that a node became an evictable leaf, or that its key fell; an older entry of it is void from now on.

        Args:
            node: not noted where it is no evictable leaf.
            nodes: how many the tree has.
        """
        if not is_evictable_leaf(node):
            return
        heappush(self._heap, self._entry(self._key(node), node))
        if len(self._heap) > 2 * nodes + SLACK:
            self._heap = [entry for entry in self._heap if _is_valid(entry)]
            heapify(self._heap)

    def first(self) -> RadixNode | None:
        """The evictable leaf with the smallest key. What has risen since it was added is brought up to date here."""
        while self._heap:
            key, _, node = self._heap[0]
            if not _is_valid(self._heap[0]):
                heappop(self._heap)
            elif key != (now := self._key(node)):
                heapreplace(self._heap, self._entry(now, node))
            else:
                return node
        return None

    def check(self, leaves: list[RadixNode]) -> None:
        """Assert that each of these evictable leaves is found in its turn.

        Raises:
            AssertionError: one isn't.
        """
        queued = {node.ticket: key for key, ticket, node in self._heap if node.ticket == ticket}
        for leaf in leaves:
            assert leaf.ticket in queued, "a leaf would never be evicted"
            assert queued[leaf.ticket] <= self._key(leaf), "a leaf's key fell unnoticed"

    def _key(self, node: RadixNode) -> tuple[int, ...]:
        return (int(node.holds > 0), *self._policy(node))

    def _entry(self, key: tuple[int, ...], node: RadixNode) -> _Entry:
        self._tickets += 1
        node.ticket = self._tickets
        return key, node.ticket, node


def _is_valid(entry: _Entry) -> bool:
    _, ticket, node = entry
    return node.ticket == ticket and is_evictable_leaf(node)
