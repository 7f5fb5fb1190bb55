"""The cache of prompt prefixes: a radix tree over token ids whose edges own KV slots.

An edge holds a run of tokens and the slot of each. Two prompts share the edges of their common prefix, so its
KV exists once (RadixAttention; Zheng et al., SGLang, arXiv:2312.07104). Nothing here is recursive: a long
conversation is a deep tree.

    root ── "You are ..." ──┬── "Plan: ..." ──── "Step 1 ..."   locks   running requests at or below: never evicted
                            └── "Rate: ..."                     holds   live prompts that end here: evicted last
"""

from bisect import bisect_left, insort
from collections.abc import Iterator

import numpy as np

from promptlang.runtime.cache.edges import walk
from promptlang.runtime.cache.eviction import Policy
from promptlang.runtime.cache.eviction_queue import EvictionQueue
from promptlang.runtime.cache.prefix_cache import Inserted, Match, Namespace, TokenIds
from promptlang.runtime.cache.radix_node import RadixNode, is_evictable_leaf, left_of, upwards
from promptlang.runtime.cache.slots import SlotAllocator, Slots


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
        roots: where each namespace's prefixes begin.
        splits: grows whenever an edge is cut in two.
        changes: grows whenever a prefix that is looked for may have become longer or shorter.
    """

    def __init__(self, allocator: SlotAllocator, policy: Policy) -> None:
        self.allocator = allocator
        self.evictable = 0
        self.locked = 0
        self.pinned = 0
        self.splits = 0
        self.changes = 0
        self.roots: dict[Namespace, RadixNode] = {}
        self._nodes = 0
        self._clock = 0
        self._queue = EvictionQueue(policy)

    @property
    def size(self) -> int:
        """Tokens cached."""
        return self.evictable + self.locked

    # Finding and adding ------------------------------------------------------------------------------

    def match(self, tokens: TokenIds, namespace: Namespace = (), limit: int | None = None) -> Match[RadixNode]:
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

    def peek(self, tokens: TokenIds, namespace: Namespace = ()) -> int:
        """The length of the longest cached prefix of `tokens` (int32 [N]); changes nothing."""
        root = self.roots.get(namespace)
        return 0 if root is None else sum(shared for _, shared in walk(root, tokens))

    def find(self, tokens: TokenIds, namespace: Namespace = ()) -> RadixNode:
        """The node that ends at the end of the longest cached prefix of `tokens` (int32 [N]). It does not count as a
        use; an edge is split where need be."""
        return self.follow(self._root(namespace), tokens)

    def follow(self, node: RadixNode, tokens: TokenIds) -> RadixNode:
        """As `find`, for tokens (int32 [N]) that come behind `node`, which was not evicted."""
        for child, shared in walk(node, tokens):
            node = child if shared == len(child.tokens) else self._split(child, shared)
        return node

    def insert(self, parent: RadixNode, tokens: TokenIds, slots: Slots) -> Inserted[RadixNode]:
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

    def _root(self, namespace: Namespace) -> RadixNode:
        root = self.roots.get(namespace)
        if root is None:
            root = self.roots[namespace] = RadixNode(np.empty(0, np.int32), np.empty(0, np.int32), None, self._clock)
        return root

    def _descend(self, node: RadixNode, tokens: TokenIds) -> tuple[RadixNode, int]:
        """Follow `tokens` below `node` as far as they go, splitting the last edge; counts each node as used."""
        self._clock += 1
        length = 0
        for child, shared in walk(node, tokens):
            node = child if shared == len(child.tokens) else self._split(child, shared)
            node.last_use = self._clock
            node.hits += 1
            node.is_spent = False
            length += shared
        return node, length

    def _split(self, node: RadixNode, at: int) -> RadixNode:
        """Cut an edge in two. The given node stays the lower part, so that handles on it keep their meaning.

        Returns:
            The new upper part.
        """
        assert node.parent is not None
        upper = RadixNode(node.tokens[:at], node.slots[:at], node.parent, node.born)
        upper.locks, upper.pins = node.locks, node.pins
        upper.last_use, upper.hits = node.last_use, node.hits
        node.parent.children[int(upper.tokens[0])] = upper
        node.keep(at, len(node.tokens))
        node.parent = upper
        upper.children[int(node.tokens[0])] = node
        self._nodes += 1
        self.splits += 1
        return upper

    def _add_leaf(self, parent: RadixNode, tokens: TokenIds, slots: Slots) -> RadixNode:
        leaf = RadixNode(tokens, slots, parent, self._clock)
        parent.children[int(tokens[0])] = leaf
        self._nodes += 1
        self.changes += 1
        self.evictable += len(tokens)
        self._enqueue(leaf)
        return leaf

    # Protecting --------------------------------------------------------------------------------------

    def lock(self, node: RadixNode) -> None:
        """Protect the path to `node` from eviction until `unlock`.

        Raises:
            ValueError: the node was evicted.
        """
        _refuse_evicted(node)
        for each in upwards(node):
            if not each.locks:
                self.evictable -= len(each.tokens)
                self.locked += len(each.tokens)
            each.locks += 1

    def unlock(self, node: RadixNode) -> None:
        """Take back one lock of `node`. Its path counts as used until now.

        Raises:
            ValueError: the node is not locked.
        """
        if not node.locks:
            raise ValueError("unlock of a node that is not locked")
        self._clock += 1
        for each in upwards(node):
            each.locks -= 1
            each.last_use = self._clock
            if not each.locks:
                self.locked -= len(each.tokens)
                self.evictable += len(each.tokens)
        self._enqueue(node)

    def unlocked(self, node: RadixNode) -> int:
        """How many evictable tokens a lock of `node` would protect."""
        count = 0
        for each in upwards(node):
            if each.locks:
                break
            count += len(each.tokens)
        return count

    def pin(self, node: RadixNode) -> None:
        """A lock that is no running request's: it counts in `pinned` until `unpin`.

        Raises:
            ValueError: the node was evicted.
        """
        self.lock(node)
        for each in upwards(node):
            if not each.pins:
                self.pinned += len(each.tokens)
            each.pins += 1

    def unpin(self, node: RadixNode) -> None:
        """Take back one pin of `node`.

        Raises:
            ValueError: the node is not pinned.
        """
        if not node.pins:
            raise ValueError("unpin of a node that is not pinned")
        for each in upwards(node):
            each.pins -= 1
            if not each.pins:
                self.pinned -= len(each.tokens)
        self.unlock(node)

    def hold(self, node: RadixNode) -> None:
        """A live prompt ends at `node`: it is evicted only after all that no prompt holds. Where it is
        evicted nonetheless, the hold passes to what is left of its path."""
        left = left_of(node)
        left.holds += 1
        left.is_spent = False

    def drop(self, node: RadixNode) -> None:
        """Take back one hold of `node`.

        Raises:
            ValueError: no prompt holds it.
        """
        left = left_of(node)
        if not left.holds:
            raise ValueError("drop of a node that no prompt holds")
        left.holds -= 1
        self._forget(left)

    def expect(self, node: RadixNode, at: int) -> None:
        """A running program will read the path to `node` again. Where the node is evicted nonetheless, the
        expectation passes to what is left of its path.

        Args:
            node: where the prefix ends.
            at: when, in a unit all running programs share; only the order counts.
        """
        left = left_of(node)
        insort(left.uses, at)
        left.is_spent = False

    def settle(self, node: RadixNode, at: int) -> None:
        """The use expected at `at` has come, or never will.

        Raises:
            ValueError: it was not expected.
        """
        left = left_of(node)
        index = bisect_left(left.uses, at)
        if left.uses[index : index + 1] != [at]:
            raise ValueError(f"no use at {at} was expected of this node")
        del left.uses[index]
        self._forget(left)

    def _forget(self, node: RadixNode) -> None:
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
        while freed < count and (leaf := self._queue.first()) is not None:
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

    def _shorten(self, leaf: RadixNode, count: int) -> int:
        """Free the last `count` tokens of a leaf, or all of it; returns how many went."""
        kept = max(0, len(leaf.tokens) - count)
        gone = leaf.slots[kept:]
        self.allocator.free(gone)
        self.changes += 1
        self.evictable -= len(gone)
        if kept:
            leaf.keep(0, kept)
            leaf.end -= len(gone)
        else:
            self._remove(leaf)
        return len(gone)

    def _remove(self, leaf: RadixNode) -> None:
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

    def _enqueue(self, node: RadixNode) -> None:
        self._queue.add(node, self._nodes)

    # Looking at it -----------------------------------------------------------------------------------

    def path(self, node: RadixNode) -> list[RadixNode]:
        """The nodes from the root to `node`, both included."""
        return list(upwards(node))[::-1]

    def tokens_of(self, node: RadixNode) -> TokenIds:
        """All tokens from the start of the prompt to the end of `node`, int32."""
        return np.concatenate([each.tokens for each in self.path(node)])

    def nodes(self) -> Iterator[RadixNode]:
        """All nodes, roots included, parents before their children."""
        waiting = list(self.roots.values())
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(node.children.values())

    def check_queue(self) -> None:
        """Assert that every node is counted, and that every leaf that may go is queued for it.

        Raises:
            AssertionError: one is not.
        """
        edges = [node for node in self.nodes() if node.parent is not None]
        assert len(edges) == self._nodes, "a node is not counted"
        self._queue.check(list(filter(is_evictable_leaf, edges)))


def _refuse_evicted(node: RadixNode) -> None:
    if node.is_evicted:
        raise ValueError("the node was evicted: lock a match before anything is evicted")
