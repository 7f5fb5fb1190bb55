"""Whether the radix tree's books are right."""

from collections.abc import Iterator

import numpy as np

from promptlang.runtime.cache.prefix_cache import Namespace
from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.cache.radix_tree import RadixTree


def check_tree(tree: RadixTree, in_use: int) -> None:
    """Walk everything and assert that what the tree counts is what is there.

    That cached output equals cold output, and that nothing stays locked after everything is released, can't be seen
    from here.

    Args:
        tree: to look at.
        in_use: slots that running requests own.

    Raises:
        AssertionError: it is not; the message says what.
    """
    pool = tree.allocator
    parts = f"{pool.available} free, {tree.evictable} evictable, {tree.locked} locked, {in_use} in use"
    assert pool.available + tree.size + in_use == pool.size, f"{parts} are not {pool.size}"
    nodes = list(tree.nodes())
    owned = np.concatenate([pool.free_slots(), *(node.slots for node in nodes)])
    assert len(np.unique(owned)) == len(owned), "a slot is in two places"
    for node in nodes:
        _check_node(node)
    edges = [node for node in nodes if node.parent is not None]
    assert _tokens(node for node in edges if node.locks) == tree.locked, "locked tokens are miscounted"
    assert _tokens(node for node in edges if not node.locks) == tree.evictable, "evictable tokens are miscounted"
    assert _tokens(node for node in edges if node.pins) == tree.pinned, "pinned tokens are miscounted"
    tree.check_queue()
    for namespace, root in tree.roots.items():
        _check_matches(tree, namespace, root)


def _tokens(nodes: Iterator[RadixNode]) -> int:
    return sum(len(node.tokens) for node in nodes)


def _check_matches(tree: RadixTree, namespace: Namespace, root: RadixNode) -> None:
    waiting = [root]
    while waiting:
        node = waiting.pop()
        waiting.extend(node.children.values())
        if not node.children:
            tokens = tree.tokens_of(node)
            assert tree.peek(tokens, namespace) == len(tokens), "what is cached is not found"


def _check_node(node: RadixNode) -> None:
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
