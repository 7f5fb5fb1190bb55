"""A promise that a prefix will be read."""

from promptlang.runtime.cache.radix_node import RadixNode, left_of
from promptlang.runtime.cache.radix_tree import RadixTree


class ExpectedRead:
    """A prefix that someone will read, until it is settled.

    Args:
        tree: is told.
        node: where the prefix ends.
        at: as in `RadixTree.expect`.

    Attributes:
        at: as given.
    """

    def __init__(self, tree: RadixTree, node: RadixNode, at: int) -> None:
        self.at = at
        self._tree, self._node = tree, node
        tree.expect(node, at)

    @property
    def node(self) -> RadixNode:
        """Where what is left of the prefix ends."""
        return left_of(self._node)

    def settle(self) -> None:
        """The read has come, or never will."""
        self._tree.settle(self._node, self.at)
