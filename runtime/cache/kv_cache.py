"""Room for keys and values: the slots, and the tree that gives some of them up."""

import numpy as np

from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator, Slots


class KvCache:
    """The slots and the tree over them: who wants room asks here.

    Args:
        allocator: the pool's slots.
        tree: what is cached.
        shares: False keeps every sequence to itself (no match, no insert).
    """

    def __init__(self, allocator: SlotAllocator, tree: RadixTree, shares: bool = True) -> None:
        self.allocator = allocator
        self.tree = tree
        self.shares = shares
        self.evicted_tokens = 0

    @property
    def room(self) -> int:
        """Slots that are free or could be."""
        return self.allocator.available + self.tree.evictable

    @property
    def used(self) -> int:
        """Slots that hold something, cached or running."""
        return self.allocator.size - self.allocator.available

    def allocate(self, count: int, after: int | None = None) -> Slots | None:
        """`count` slots, right behind slot `after` where possible; evicts what it must; None when there is no room."""
        if after is not None and self.allocator.extend(after, count):
            return np.arange(after + 1, after + 1 + count, dtype=np.int32)
        if count > self.allocator.available:
            if count > self.room:
                return None
            self.evicted_tokens += self.tree.evict(count - self.allocator.available)
        return self.allocator.allocate(count)
