"""The naive baseline: nothing is ever shared."""

from promptlang.runtime.cache.prefix_cache import Inserted, Match, Namespace, TokenIds
from promptlang.runtime.cache.slots import SlotAllocator, Slots


class NoCache:
    """A prefix cache that keeps nothing: each request computes its whole prompt and gives all slots back. Its nodes are
    None.

    Args:
        allocator: gives out the slots.
    """

    def __init__(self, allocator: SlotAllocator) -> None:
        self.allocator = allocator
        self.evictable = 0
        self.locked = 0

    def match(self, tokens: TokenIds, namespace: Namespace = (), limit: int | None = None) -> Match[None]:
        """Never a token."""
        return Match(None, 0)

    def peek(self, tokens: TokenIds, namespace: Namespace = ()) -> int:
        """Never a token."""
        return 0

    def insert(self, parent: None, tokens: TokenIds, slots: Slots) -> Inserted[None]:
        """Free the slots."""
        self.allocator.free(slots)
        return Inserted(None, slots)

    def lock(self, node: None) -> None:
        """There is nothing to protect."""

    def unlock(self, node: None) -> None:
        """There is nothing to let go."""

    def evict(self, count: int) -> int:
        """There is nothing to evict."""
        return 0
