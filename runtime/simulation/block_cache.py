"""A flat baseline: prefixes in blocks of fixed size, found by chained hashes.

A block's key is the digest of its tokens and of the key of the block before, so equal keys mean equal prefixes. Only
whole blocks are shared. This is how vLLM caches prefixes (Kwon et al., PagedAttention, arXiv:2309.06180); blocks are
evicted by recency.
"""

from collections import OrderedDict
from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from promptlang.runtime.cache.prefix_cache import Inserted, Match, Namespace, TokenIds
from promptlang.runtime.cache.slots import SlotAllocator, Slots

BLOCK = 16
"""Tokens a block."""


class Block:
    """One cached block, and the point where it ends.

    Attributes:
        key: digest of the prefix that ends here.
        parent: the block before; None at a namespace's start.
        slots: int32 [tokens a block]; empty at a namespace's start.
        locks: locks at this block and behind it.
    """

    __slots__ = ("key", "locks", "parent", "slots")

    def __init__(self, key: bytes, parent: "Block | None", slots: Slots) -> None:
        self.key = key
        self.parent = parent
        self.slots = slots
        self.locks = 0


class BlockCache:
    """Prefixes in blocks. Nodes are blocks.

    Args:
        allocator: gives out the slots; the cache frees there what it evicts.
        block: tokens a block.
    """

    def __init__(self, allocator: SlotAllocator, block: int = BLOCK) -> None:
        self.allocator = allocator
        self._block = block
        self._blocks: dict[bytes, Block] = {}
        self._unlocked: OrderedDict[bytes, Block] = OrderedDict()

    @property
    def evictable(self) -> int:
        """Cached tokens that no lock protects."""
        return len(self._unlocked) * self._block

    @property
    def locked(self) -> int:
        """Cached tokens under a lock."""
        return (len(self._blocks) - len(self._unlocked)) * self._block

    def match(self, tokens: TokenIds, namespace: Namespace = (), limit: int | None = None) -> Match[Block]:
        """The longest cached prefix of whole blocks, of at most `limit` tokens (int32 [N])."""
        block, length = self._start(namespace), 0
        for key in self._keys(block.key, tokens[:limit]):
            if key not in self._blocks:
                break
            block, length = self._blocks[key], length + self._block
        return Match(block, length)

    def peek(self, tokens: TokenIds, namespace: Namespace = ()) -> int:
        """How many tokens `match` would find; changes nothing."""
        return self.match(tokens, namespace).length

    def insert(self, parent: Block, tokens: TokenIds, slots: Slots) -> Inserted[Block]:
        """Add computed tokens behind `parent`, which the caller has locked.

        Args:
            parent: what the tokens follow.
            tokens, slots: int32 [N]; the slots' ownership passes to the cache.

        Returns:
            The last whole block, and the slots freed (int32): those of blocks cached already, and of the rest behind
            the last block.
        """
        keys = self._keys(parent.key, tokens)
        unneeded = [slots[len(keys) * self._block :]]
        block, passed = parent, []
        for index, key in enumerate(keys):
            part = slots[index * self._block : (index + 1) * self._block]
            if key in self._blocks:
                unneeded.append(part)
                block = self._blocks[key]
            else:
                block = self._blocks[key] = Block(key, block, part)
            passed.append(block)
        self._use(passed[::-1])
        freed = np.concatenate(unneeded)
        self.allocator.free(freed)
        return Inserted(block, freed)

    def lock(self, node: Block) -> None:
        """Protect the path to `node` from eviction."""
        for block in _upwards(node):
            block.locks += 1
            self._unlocked.pop(block.key, None)

    def unlock(self, node: Block) -> None:
        """Take one lock back. Of the blocks let go, the last of the prefix will be evicted first."""
        path = list(_upwards(node))
        for block in path:
            block.locks -= 1
        self._use(path)

    def evict(self, count: int) -> int:
        """Free at least `count` slots, if that many are evictable, in whole blocks, the longest unused first.

        Returns:
            Slots freed.
        """
        freed = 0
        while freed < count and self._unlocked:
            key, block = self._unlocked.popitem(last=False)
            del self._blocks[key]
            self.allocator.free(block.slots)
            freed += len(block.slots)
        return freed

    def _use(self, blocks: list[Block]) -> None:
        """Count blocks as used just now, the last of the list latest. Those behind a block must stand before it."""
        for block in blocks:
            if not block.locks and block.parent is not None:
                self._unlocked[block.key] = block
                self._unlocked.move_to_end(block.key)

    def _start(self, namespace: Namespace) -> Block:
        """Where a namespace's prefixes begin; no block of its own."""
        return Block(_digest(b"", repr(namespace).encode()), None, np.empty(0, np.int32))

    def _keys(self, before: bytes, tokens: TokenIds) -> list[bytes]:
        """The keys of the whole blocks of `tokens` behind the block with key `before`."""
        keys: list[bytes] = []
        for start in range(0, len(tokens) - self._block + 1, self._block):
            before = _digest(before, tokens[start : start + self._block].tobytes())
            keys.append(before)
        return keys


def _upwards(block: Block) -> Iterator[Block]:
    """The block, the one before it, and so on to the namespace's start."""
    each: Block | None = block
    while each is not None:
        yield each
        each = each.parent


def _digest(before: bytes, content: bytes) -> bytes:
    return blake2b(content, digest_size=16, key=before).digest()
