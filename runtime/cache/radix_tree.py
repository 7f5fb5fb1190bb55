"""The cache of prompt prefixes: a radix tree over token ids whose edges own KV slots.

An edge holds a run of tokens and the slot of each. Two prompts share the edges of their common prefix, so its
KV exists once (RadixAttention; Zheng et al., SGLang, arXiv:2312.07104). Nothing here is recursive: a long
conversation is a deep tree.

    root ── "You are ..." ──┬── "Plan: ..." ──── "Step 1 ..."      locks   running requests at or below: never
    evicted
                            └── "Rate: ..."                        holds   live prompts that end here: evicted
                            last
"""

from bisect import bisect_left, insort
from collections.abc import Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import TypeAlias

import numpy as np

from promptlang.runtime.cache.eviction import Policy
from promptlang.runtime.cache.prefix_cache import Inserted, Match, Namespace, Tokens
from promptlang.runtime.cache.slots import Run, SlotAllocator, Slots, runs


class Node:
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

    def __init__(self, tokens: Tokens, slots: Slots, parent: "Node | None", born: int) -> None:
        self.tokens = tokens
        self.slots = slots
        self.parent = parent
        self.end: int = len(tokens) + (parent.end if parent is not None else 0)
        self.children: dict[int, Node] = {}
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
        self._runs: tuple[Run, ...] | None = None

    @property
    def runs(self) -> tuple[Run, ...]:
        """The edge's slots as maximal contiguous runs."""
        if self._runs is None:
            self._runs = runs(self.slots)
        return self._runs

    def keep(self, start: int, end: int) -> None:
        """Shorten the edge to its tokens from `start` to `end`."""
        self.tokens = self.tokens[start:end]
        self.slots = self.slots[start:end]
        self._runs = None


_Entry: TypeAlias = tuple[tuple[int, ...], int, Node]
"""A node in the eviction queue: its key then, the ticket it got, the node."""


class RadixTree:
    """Cached prefixes, by namespace and tokens.

    Args:
        allocator: gives out the slots; the tree frees there what it evicts.
        policy: which leaf goes first (see `eviction`).

    Attributes:
        allocator: as given.
        evictable: cached tokens that no lock protects.
        locked: cached tokens under a lock.
        pinned: those of them that are pinned, each counted once.
    """

    def __init__(self, allocator: SlotAllocator, policy: Policy) -> None:
        self.allocator = allocator
        self.evictable = 0
        self.locked = 0
        self.pinned = 0
        self._policy = policy
        self._roots: dict[Namespace, Node] = {}
        self._nodes = 0
        self._clock = 0
        self._queue: list[_Entry] = []
        self._tickets = 0

    @property
    def size(self) -> int:
        """Tokens cached."""
        return self.evictable + self.locked

    # Finding and adding ------------------------------------------------------------------------------

    def match(self, tokens: Tokens, namespace: Namespace = (), limit: int | None = None) -> Match[Node]:
        """Find the longest cached prefix, and count it as used. To be locked before anything else is asked of
        the tree.

        Args:
            tokens: int32 [N].
            namespace: whose prefixes to look at.
            limit: the most tokens to match.

        Returns:
            The node that ends at the prefix's end (an edge is split there if need be), and the prefix's
            length.
        """
        return Match(*self._descend(self._root(namespace), tokens[:limit]))

    def peek(self, tokens: Tokens, namespace: Namespace = ()) -> int:
        """The length of the longest cached prefix of `tokens` (int32 [N]); changes nothing."""
        root = self._roots.get(namespace)
        return 0 if root is None else sum(shared for _, shared in _walk(root, tokens))

    def find(self, tokens: Tokens, namespace: Namespace = ()) -> Node:
        """The node that ends at the end of the longest cached prefix of `tokens` (int32 [N]). It does not count as a
        use; an edge is split where need be."""
        return self.follow(self._root(namespace), tokens)

    def follow(self, node: Node, tokens: Tokens) -> Node:
        """As `find`, for tokens (int32 [N]) that come behind `node`, which was not evicted."""
        for child, shared in _walk(node, tokens):
            node = child if shared == len(child.tokens) else self._split(child, shared)
        return node

    def insert(self, parent: Node, tokens: Tokens, slots: Slots) -> Inserted[Node]:
        """Add computed tokens below `parent`, which the caller has locked. Where the tree has some of them
        already (another request computed the same), it keeps its own slots and frees the caller's.

        Args:
            parent: what the tokens follow.
            tokens, slots: int32 [N]; the slots' ownership passes to the tree.

        Returns:
            The node that ends at the last token, and the caller's slots that were freed (int32).
        """
        if len(tokens) != len(slots):
            raise ValueError(f"{len(tokens)} tokens with {len(slots)} slots")
        _refuse_evicted(parent)
        node, known = self._descend(parent, tokens)
        duplicates = slots[:known]
        self.allocator.free(duplicates)
        if known < len(tokens):
            node = self._add_leaf(node, tokens[known:].copy(), slots[known:].copy())
        return Inserted(node, duplicates)

    def _root(self, namespace: Namespace) -> Node:
        root = self._roots.get(namespace)
        if root is None:
            root = self._roots[namespace] = Node(np.empty(0, np.int32), np.empty(0, np.int32), None, self._clock)
        return root

    def _descend(self, node: Node, tokens: Tokens) -> tuple[Node, int]:
        """Follow `tokens` below `node` as far as they go, splitting the last edge; counts each node as used."""
        self._clock += 1
        length = 0
        for child, shared in _walk(node, tokens):
            node = child if shared == len(child.tokens) else self._split(child, shared)
            node.last_use = self._clock
            node.hits += 1
            node.is_spent = False
            length += shared
        return node, length

    def _split(self, node: Node, at: int) -> Node:
        """Cut an edge in two. The given node stays the lower part, so that handles on it keep their meaning.

        Returns:
            The new upper part.
        """
        assert node.parent is not None
        upper = Node(node.tokens[:at], node.slots[:at], node.parent, node.born)
        upper.locks, upper.pins = node.locks, node.pins
        upper.last_use, upper.hits = node.last_use, node.hits
        node.parent.children[int(upper.tokens[0])] = upper
        node.keep(at, len(node.tokens))
        node.parent = upper
        upper.children[int(node.tokens[0])] = node
        self._nodes += 1
        return upper

    def _add_leaf(self, parent: Node, tokens: Tokens, slots: Slots) -> Node:
        leaf = Node(tokens, slots, parent, self._clock)
        parent.children[int(tokens[0])] = leaf
        self._nodes += 1
        self.evictable += len(tokens)
        self._enqueue(leaf)
        return leaf

    # Protecting --------------------------------------------------------------------------------------

    def lock(self, node: Node) -> None:
        """Protect the path to `node` from eviction until `unlock`.

        Raises:
            ValueError: the node was evicted.
        """
        _refuse_evicted(node)
        for each in _upwards(node):
            if not each.locks:
                self.evictable -= len(each.tokens)
                self.locked += len(each.tokens)
            each.locks += 1

    def unlock(self, node: Node) -> None:
        """Take back one lock of `node`. Its path counts as used until now.

        Raises:
            ValueError: the node is not locked.
        """
        if not node.locks:
            raise ValueError("unlock of a node that is not locked")
        self._clock += 1
        for each in _upwards(node):
            each.locks -= 1
            each.last_use = self._clock
            if not each.locks:
                self.locked -= len(each.tokens)
                self.evictable += len(each.tokens)
        self._enqueue(node)

    def pin(self, node: Node) -> None:
        """A lock that is no running request's: it counts in `pinned` until `unpin`.

        Raises:
            ValueError: the node was evicted.
        """
        self.lock(node)
        for each in _upwards(node):
            if not each.pins:
                self.pinned += len(each.tokens)
            each.pins += 1

    def unpin(self, node: Node) -> None:
        """Take back one pin of `node`.

        Raises:
            ValueError: the node is not pinned.
        """
        if not node.pins:
            raise ValueError("unpin of a node that is not pinned")
        for each in _upwards(node):
            each.pins -= 1
            if not each.pins:
                self.pinned -= len(each.tokens)
        self.unlock(node)

    def hold(self, node: Node) -> None:
        """A live prompt ends at `node`: it is evicted only after all that no prompt holds. Where it is
        evicted nonetheless, the hold passes to what is left of its path."""
        left = _left_of(node)
        left.holds += 1
        left.is_spent = False

    def drop(self, node: Node) -> None:
        """Take back one hold of `node`.

        Raises:
            ValueError: no prompt holds it.
        """
        left = _left_of(node)
        if not left.holds:
            raise ValueError("drop of a node that no prompt holds")
        left.holds -= 1
        self._forget(left)

    def expect(self, node: Node, at: int) -> None:
        """A running program will read the path to `node` again. Where the node is evicted nonetheless, the
        expectation passes to what is left of its path.

        Args:
            node: where the prefix ends.
            at: when, in a unit all running programs share; only the order counts.
        """
        left = _left_of(node)
        insort(left.uses, at)
        left.is_spent = False

    def settle(self, node: Node, at: int) -> None:
        """The use expected at `at` has come, or never will.

        Raises:
            ValueError: it was not expected.
        """
        left = _left_of(node)
        index = bisect_left(left.uses, at)
        if left.uses[index : index + 1] != [at]:
            raise ValueError(f"no use at {at} was expected of this node")
        del left.uses[index]
        self._forget(left)

    def _forget(self, node: Node) -> None:
        """One claim on the node less: it may go earlier now."""
        node.is_spent = not node.holds and not node.uses
        self._enqueue(node)

    # Evicting ----------------------------------------------------------------------------------------

    def evict(self, count: int) -> int:
        """Free slots, leaf by leaf in the policy's order, what live prompts hold last and what is locked
        never. Of the last leaf only as much goes as is needed, from its end.

        Args:
            count: slots wanted.

        Returns:
            Slots freed: `count`, or fewer where no more were evictable.
        """
        freed = 0
        while freed < count and (leaf := self._first_to_go()) is not None:
            freed += self._shorten(leaf, count - freed)
        return freed

    def clear(self) -> None:
        """Forget everything.

        Raises:
            ValueError: something is locked.
        """
        if self.locked:
            raise ValueError(f"{self.locked} cached tokens are locked")
        self.evict(self.evictable)

    def _first_to_go(self) -> Node | None:
        """The evictable leaf with the smallest key. Keys rise without notice: an entry's is brought up to date here."""
        while self._queue:
            key, _, node = self._queue[0]
            if not _is_valid(self._queue[0]):
                heappop(self._queue)
            elif key != (now := self._key(node)):
                heapreplace(self._queue, self._entry(now, node))
            else:
                return node
        return None

    def _shorten(self, leaf: Node, count: int) -> int:
        """Free the last `count` tokens of a leaf, or all of it; returns how many went."""
        kept = max(0, len(leaf.tokens) - count)
        gone = leaf.slots[kept:]
        self.allocator.free(gone)
        self.evictable -= len(gone)
        if kept:
            leaf.keep(0, kept)
            leaf.end -= len(gone)
        else:
            self._remove(leaf)
        return len(gone)

    def _remove(self, leaf: Node) -> None:
        """Take a leaf out; what is known of it passes to its parent."""
        parent = leaf.parent
        assert parent is not None
        del parent.children[int(leaf.tokens[0])]
        leaf.is_evicted = True
        self._nodes -= 1
        parent.holds += leaf.holds
        parent.uses = sorted(parent.uses + leaf.uses)
        parent.is_spent = (parent.is_spent or leaf.is_spent) and not parent.holds and not parent.uses
        self._enqueue(parent)

    def _key(self, node: Node) -> tuple[int, ...]:
        return (int(node.holds > 0), *self._policy(node))

    def _entry(self, key: tuple[int, ...], node: Node) -> _Entry:
        self._tickets += 1
        node.ticket = self._tickets
        return key, node.ticket, node

    def _enqueue(self, node: Node) -> None:
        """Note that a node became an evictable leaf, or that its key fell; an older entry of it is void from now on."""
        if not _is_evictable_leaf(node):
            return
        heappush(self._queue, self._entry(self._key(node), node))
        if len(self._queue) > 2 * self._nodes + 64:
            self._queue = [entry for entry in self._queue if _is_valid(entry)]
            heapify(self._queue)

    # Looking at it -----------------------------------------------------------------------------------

    def path(self, node: Node) -> list[Node]:
        """The nodes from the root to `node`, both included."""
        return list(_upwards(node))[::-1]

    def tokens_of(self, node: Node) -> Tokens:
        """All tokens from the start of the prompt to the end of `node`, int32."""
        return np.concatenate([each.tokens for each in self.path(node)])

    def nodes(self) -> Iterator[Node]:
        """All nodes, roots included, parents before their children."""
        waiting = list(self._roots.values())
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children.values())

    def render(self) -> str:
        """A drawing of the tree for debugging: a line a node, indented by depth, long edges shortened."""
        lines: list[str] = []
        waiting = [(root, 0, repr(namespace)) for namespace, root in reversed(self._roots.items())]
        while waiting:
            node, depth, name = waiting.pop()
            lines.append(f"{'  ' * depth}{name}  locks={node.locks} holds={node.holds} last_use={node.last_use}")
            waiting += [(child, depth + 1, _caption(child.tokens)) for child in reversed(node.children.values())]
        return "\n".join(lines)

    def check(self, in_use: int) -> None:
        """Walk everything and assert that the books are right. (That cached output equals cold output, and
        that nothing stays locked after everything is released, can't be seen from here.)

        Args:
            in_use: slots that running requests own.

        Raises:
            AssertionError: they are not; the message says what.
        """
        pool = self.allocator
        parts = f"{pool.available} free, {self.evictable} evictable, {self.locked} locked, {in_use} in use"
        assert pool.available + self.size + in_use == pool.size, f"{parts} are not {pool.size}"
        nodes = list(self.nodes())
        owned = np.concatenate([pool.free_slots(), *(node.slots for node in nodes)])
        assert len(np.unique(owned)) == len(owned), "a slot is in two places"
        for node in nodes:
            _check_node(node)
        edges = [node for node in nodes if node.parent is not None]
        assert len(edges) == self._nodes, "a node is not counted"
        assert sum(len(node.tokens) for node in edges if node.locks) == self.locked, "locked tokens are miscounted"
        assert sum(len(node.tokens) for node in edges if not node.locks) == self.evictable, (
            "evictable tokens are miscounted"
        )
        assert sum(len(node.tokens) for node in edges if node.pins) == self.pinned, "pinned tokens are miscounted"
        queued = {node.ticket: key for key, ticket, node in self._queue if node.ticket == ticket}
        for leaf in filter(_is_evictable_leaf, edges):
            assert leaf.ticket in queued, "a leaf would never be evicted"
            assert queued[leaf.ticket] <= self._key(leaf), "a leaf's key fell unnoticed"
        for namespace, root in self._roots.items():
            self._check_matches(namespace, root)

    def _check_matches(self, namespace: Namespace, root: Node) -> None:
        waiting = [root]
        while waiting:
            node = waiting.pop()
            waiting.extend(node.children.values())
            if not node.children:
                tokens = self.tokens_of(node)
                assert self.peek(tokens, namespace) == len(tokens), "what is cached is not found"


class ExpectedRead:
    """A prefix that someone will read, until it is settled.

    Args:
        tree: is told.
        node: where the prefix ends.
        at: as in `RadixTree.expect`.

    Attributes:
        at: as given.
    """

    def __init__(self, tree: RadixTree, node: Node, at: int) -> None:
        self.at = at
        self._tree, self._node = tree, node
        tree.expect(node, at)

    def settle(self) -> None:
        """The read has come, or never will."""
        self._tree.settle(self._node, self.at)


def _walk(node: Node, tokens: Tokens) -> Iterator[tuple[Node, int]]:
    """The nodes below `node` that `tokens` lead through, each with how many tokens of its edge they share."""
    at = 0
    while at < len(tokens):
        child = node.children.get(int(tokens[at]))
        if child is None:
            return
        edge = child.tokens
        shared = _common_prefix(edge, tokens[at : at + len(edge)])
        yield child, shared
        if shared < len(edge):
            return
        node, at = child, at + shared


def _common_prefix(edge: Tokens, tokens: Tokens) -> int:
    """How many first tokens are equal; `tokens` is not empty and no longer than `edge`."""
    differs = edge[: len(tokens)] != tokens
    first = int(differs.argmax())
    return first if differs[first] else len(tokens)


def _upwards(node: Node) -> Iterator[Node]:
    """The node, its parent, and so on to the root."""
    each: Node | None = node
    while each is not None:
        yield each
        each = each.parent


def _left_of(node: Node) -> Node:
    """The node itself, or the nearest one above it that was not evicted."""
    while node.is_evicted:
        assert node.parent is not None
        node = node.parent
    return node


def _refuse_evicted(node: Node) -> None:
    if node.is_evicted:
        raise ValueError("the node was evicted: lock a match before anything is evicted")


def _is_evictable_leaf(node: Node) -> bool:
    return not (node.locks or node.children or node.is_evicted or node.parent is None)


def _is_valid(entry: _Entry) -> bool:
    _, ticket, node = entry
    return node.ticket == ticket and _is_evictable_leaf(node)


def _caption(tokens: Tokens) -> str:
    shown = " ".join(map(str, tokens[:8].tolist()))
    return f"{shown} ... ({len(tokens)} tokens)" if len(tokens) > 8 else shown


def _check_node(node: Node) -> None:
    assert not node.is_evicted, "an evicted node is in the tree"
    assert len(node.tokens) == len(node.slots), "an edge's tokens and slots differ in number"
    assert node.end == len(node.tokens) + (node.parent.end if node.parent is not None else 0), "a node's end is wrong"
    assert (len(node.tokens) == 0) == (node.parent is None), "only a root has an empty edge"
    assert node.locks >= sum(child.locks for child in node.children.values()), (
        "a parent is locked less than its children"
    )
    assert node.locks >= node.pins >= sum(child.pins for child in node.children.values()), "a pin is no lock"
    assert node.holds >= 0, "a node is held less than never"
    assert sum(length for _, length in node.runs) == len(node.slots), "a node's runs are stale"
    for first, child in node.children.items():
        assert child.parent is node, "a child's parent is another"
        assert first == int(child.tokens[0]), "a child stands under another token than its first"
