"""What every cache of prompt prefixes answers, whichever way it keeps them."""

from collections.abc import Hashable
from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from promptlang.runtime.cache.slots import SlotAllocator, Slots

Tokens: TypeAlias = npt.NDArray[np.int32]
Namespace: TypeAlias = tuple[Hashable, ...]
"""What else a prefix depends on (an adapter, a tenant's salt): prefixes of different namespaces never meet."""

Node = TypeVar("Node")


class Match(NamedTuple, Generic[Node]):
    """A cached prefix: `node` ends exactly `length` tokens from the start."""

    node: Node
    length: int


class Inserted(NamedTuple, Generic[Node]):
    """Where inserted tokens end, and the caller's slots that were not needed and are free again."""

    node: Node
    duplicates: Slots


class PrefixCache(Protocol[Node]):
    """A cache of prompt prefixes and the KV slots behind them.

    A request matches, locks, computes the rest, inserts it, and unlocks.
    """

    allocator: SlotAllocator

    @property
    def evictable(self) -> int:
        """Cached tokens that no lock protects."""
        ...

    @property
    def locked(self) -> int:
        """Cached tokens under a lock."""
        ...

    def match(self, tokens: Tokens, namespace: Namespace = (), limit: int | None = None) -> Match[Node]:
        """The longest cached prefix of at most `limit` tokens."""
        ...

    def peek(self, tokens: Tokens, namespace: Namespace = ()) -> int:
        """How many tokens `match` would find; changes nothing."""
        ...

    def insert(self, parent: Node, tokens: Tokens, slots: Slots) -> Inserted[Node]:
        """Add computed tokens behind `parent`. The cache owns the slots from here on."""
        ...

    def lock(self, node: Node) -> None:
        """Protect the path to `node` from eviction."""
        ...

    def unlock(self, node: Node) -> None:
        """Take one lock back."""
        ...

    def evict(self, count: int) -> int:
        """Free at least `count` slots if that many are evictable; returns how many were freed."""
        ...
