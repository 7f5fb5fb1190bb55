"""All prompts in one trie: what of them is distinct."""

from collections.abc import Sequence

import numpy as np

from promptlang.runtime.cache.edges import walk
from promptlang.runtime.cache.prefix_cache import TokenIds

MOST_BYTES = 64 << 20
"""Memory of one trie: some ten million distinct tokens, as prompts go."""

EDGE_BYTES = 400
"""What an edge takes beside the four bytes of each of its tokens."""


class PromptEdge:
    """A run of tokens that the same prompts share, and the point where it ends. A point stays good as its trie grows.

    Attributes:
        tokens: int32 [N].
        is_written: whether the model wrote them before any prompt held them.
        children: by the first token of their edges.
    """

    __slots__ = ("children", "is_written", "tokens")

    def __init__(self, tokens: TokenIds, is_written: bool) -> None:
        self.tokens = tokens
        self.is_written = is_written
        self.children: dict[int, PromptEdge] = {}


class PromptTrie:
    """The trie of all prompts: its distinct tokens are what must be computed at least, but for those the model
    wrote.

    When its memory is full, it grows no more: what is new from then on counts each time it comes, so `size` may be too
    large, but never too small.

    Args:
        most_bytes: the memory it may take, as far as it is counted here.

    Attributes:
        size: distinct tokens, without those that the model wrote before any prompt held them.
        bytes: memory taken.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.size = 0
        self.bytes = 0
        self._most_bytes = most_bytes
        self._root = PromptEdge(np.empty(0, np.int32), False)

    def add(self, tokens: Sequence[int], after: PromptEdge | None = None) -> PromptEdge:
        """A prompt, or how one goes on behind `after`. Returns the point where it ends."""
        return self._extend(after or self._root, np.array(tokens, np.int32), is_written=False)

    def add_written(self, tokens: Sequence[int]) -> None:
        """A prompt and what the model wrote behind it."""
        self._extend(self._root, np.array(tokens, np.int32), is_written=True)

    def merge(self, other: "PromptTrie") -> None:
        """Count another trie's prompts too."""
        waiting = [(other._root, self._root)]
        while waiting:
            theirs, ours = waiting.pop()
            children = theirs.children.values()
            waiting += [(child, self._extend(ours, child.tokens, child.is_written)) for child in children]

    def _extend(self, edge: PromptEdge, tokens: TokenIds, is_written: bool) -> PromptEdge:
        known = 0
        for child, shared in walk(edge, tokens):
            edge = child if shared == len(child.tokens) else self._split(edge, child, shared)
            known += shared
        if known == len(tokens):
            return edge
        if not is_written:
            self.size += len(tokens) - known
        return self._append(edge, PromptEdge(tokens[known:].copy(), is_written))

    def _append(self, edge: PromptEdge, leaf: PromptEdge) -> PromptEdge:
        if self._has_room(EDGE_BYTES + leaf.tokens.nbytes):
            edge.children[int(leaf.tokens[0])] = leaf
        return leaf

    def _split(self, parent: PromptEdge, edge: PromptEdge, at: int) -> PromptEdge:
        """Cut an edge in two. It stays the lower part; returns the upper one."""
        upper = PromptEdge(edge.tokens[:at], edge.is_written)
        if self._has_room(EDGE_BYTES):
            parent.children[int(upper.tokens[0])] = upper
            edge.tokens = edge.tokens[at:]
            upper.children[int(edge.tokens[0])] = edge
        return upper

    def _has_room(self, count: int) -> bool:
        """Whether that many bytes more may be taken; they are taken."""
        if self.bytes + count > self._most_bytes:
            return False
        self.bytes += count
        return True
