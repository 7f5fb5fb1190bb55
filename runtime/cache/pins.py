"""Prefixes that someone wants kept, computed or not yet."""

from promptlang.runtime.cache.prefix_cache import Namespace, TokenIds
from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.cache.radix_tree import RadixTree


class Pin:
    """A prefix that is wanted. `Pins` owns it; callers keep it to release it.

    Attributes:
        tokens: int32 [N], the prefix.
        node: where what is kept of it ends.
    """

    def __init__(self, tokens: TokenIds, node: RadixNode) -> None:
        self.tokens = tokens
        self.node = node

    @property
    def length(self) -> int:
        """How many tokens are kept."""
        return self.node.end

    @property
    def is_whole(self) -> bool:
        """Whether all of the prefix is kept."""
        return self.length == len(self.tokens)


class Pins:
    """All pins of a tree.

    What is computed of a prefix is kept at once, the rest as soon as it is computed, all of it up to the limit. What
    several pins share counts once; what running requests lock does not count.

    Args:
        tree: whose prefixes.
        limit: the most tokens kept.
    """

    def __init__(self, tree: RadixTree, limit: int) -> None:
        self._tree = tree
        self._limit = limit
        self._pins: set[Pin] = set()
        self._partial: dict[Pin, None] = {}

    def add(self, tokens: TokenIds, namespace: Namespace = ()) -> Pin:
        """Keep a prefix until `release`.

        Args:
            tokens: int32 [N].
            namespace: whose prefix it is.
        """
        pin = Pin(tokens, self._tree.find(tokens[:0], namespace))
        self._tree.pin(pin.node)
        self._pins.add(pin)
        self._partial[pin] = None
        self._grow(pin)
        return pin

    def update(self) -> None:
        """Keep what was computed of the prefixes since they were added. Costs a look at each that is not whole."""
        for pin in list(self._partial):
            self._grow(pin)

    def release(self, pin: Pin) -> None:
        """Let go of a prefix.

        Raises:
            KeyError: it was released before.
        """
        self._pins.remove(pin)
        self._partial.pop(pin, None)
        self._tree.unpin(pin.node)

    def _grow(self, pin: Pin) -> None:
        if self._may_grow(pin):
            end = self._end_within_limit(pin)
            self._tree.pin(end)
            self._tree.unpin(pin.node)
            pin.node = end
        if pin.is_whole:
            del self._partial[pin]

    def _may_grow(self, pin: Pin) -> bool:
        """Whether more of the prefix is computed than is kept, and the next of it is free to keep or within the
        limit."""
        if pin.is_whole:
            return False
        following = pin.node.children.get(int(pin.tokens[pin.length]))
        return following is not None and (following.pins > 0 or self._tree.pinned < self._limit)

    def _end_within_limit(self, pin: Pin) -> RadixNode:
        """Where what can be kept of the prefix ends."""
        end = self._tree.follow(pin.node, pin.tokens[pin.length :])
        unpinned = sum(len(node.tokens) for node in self._tree.path(end) if not node.pins)
        excess = self._tree.pinned + unpinned - self._limit
        return end if excess <= 0 else self._tree.follow(pin.node, pin.tokens[pin.length : end.end - excess])
