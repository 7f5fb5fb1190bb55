"""An edge of the radix tree, and how to walk along edges."""

from collections.abc import Iterator

from promptlang.runtime.cache.prefix_cache import TokenIds
from promptlang.runtime.cache.slots import SlotRun, Slots, runs


class RadixNode:
    """One edge of the tree and the point where it ends. The tree owns all of it; callers keep nodes as
    handles and read.

    A handle stays good when the tree splits its edge: the handle's node is the lower part and ends where it
    did.

    Attributes:
        tokens, slots: int32 [N], what the edge holds; empty at a root.
        end: tokens from the start of the prompt to where the edge ends.
        parent: None at a root; of an evicted node, where it was.
        children: by the first token of their edges.
        locks: locks at this node and below it.
        pins: those of the locks that `pin` took.
        holds: live prompts that end here.
        uses: when running programs will read up to here again, in their unit of time, ascending.
        is_spent: programs held it or expected to use it, and no longer do.
        is_evicted: no longer in the tree.
        born, last_use: readings of the tree's clock.
        hits: matches and insertions that went through.
        ticket: number of its valid entry in the eviction queue.
    """

    __slots__ = (
        "_runs",
        "born",
        "children",
        "end",
        "hits",
        "holds",
        "is_evicted",
        "is_spent",
        "last_use",
        "locks",
        "parent",
        "pins",
        "slots",
        "ticket",
        "tokens",
        "uses",
    )

    def __init__(self, tokens: TokenIds, slots: Slots, parent: "RadixNode | None", born: int) -> None:
        self.tokens = tokens
        self.slots = slots
        self.parent = parent
        self.end: int = len(tokens) + (parent.end if parent is not None else 0)
        self.children: dict[int, RadixNode] = {}
        self.locks = 0
        self.pins = 0
        self.holds = 0
        self.uses: list[int] = []
        self.is_spent = False
        self.is_evicted = False
        self.born = born
        self.last_use = born
        self.hits = 1
        self.ticket = 0
        self._runs: tuple[SlotRun, ...] | None = None

    @property
    def runs(self) -> tuple[SlotRun, ...]:
        """The edge's slots as maximal contiguous runs."""
        if self._runs is None:
            self._runs = runs(self.slots)
        return self._runs

    def keep(self, start: int, end: int) -> None:
        """Shorten the edge to its tokens from `start` to `end`."""
        self.tokens = self.tokens[start:end]
        self.slots = self.slots[start:end]
        self._runs = None


def upwards(node: RadixNode) -> Iterator[RadixNode]:
    """The node, its parent, and so on to the root."""
    each: RadixNode | None = node
    while each is not None:
        yield each
        each = each.parent


def left_of(node: RadixNode) -> RadixNode:
    """The node itself, or the nearest one above it that was not evicted."""
    while node.is_evicted:
        assert node.parent is not None
        node = node.parent
    return node


def is_evictable_leaf(node: RadixNode) -> bool:
    """Whether nothing stands behind the node, and nothing in its way."""
    return not (node.locks or node.children or node.is_evicted or node.parent is None)
