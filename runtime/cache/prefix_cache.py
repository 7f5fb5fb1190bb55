"""What every cache of prompt prefixes answers, whichever way it keeps them."""

from typing import Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from promptlang.runtime.cache.slots import SlotAllocator, Slots

TokenIds: TypeAlias = npt.NDArray[np.int32]
Namespace: TypeAlias = tuple[str, ...]
"""What else a prefix depends on (an adapter, a tenant's salt): prefixes of different namespaces never meet."""

AnyNode = TypeVar("AnyNode")


class Match(NamedTuple, Generic[AnyNode]):
    """A cached prefix: `node` ends exactly `length` tokens from the start."""

    node: AnyNode
    length: int


class Inserted(NamedTuple, Generic[AnyNode]):
    """Where inserted tokens end, and the caller's slots that were not needed and are free again."""

    node: AnyNode
    duplicates: Slots


class PrefixCache(Protocol[AnyNode]):
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

    def match(self, tokens: TokenIds, namespace: Namespace = (), limit: int | None = None) -> Match[AnyNode]:
        """The longest cached prefix of at most `limit` tokens."""
        ...

    def peek(self, tokens: TokenIds, namespace: Namespace = ()) -> int:
        """How many tokens `match` would find; changes nothing."""
        ...

    def insert(self, parent: AnyNode, tokens: TokenIds, slots: Slots) -> Inserted[AnyNode]:
        """Add computed tokens behind `parent`. The cache owns the slots from here on."""
        ...

    def lock(self, node: AnyNode) -> None:
        """Protect the path to `node` from eviction."""
        ...

    def unlock(self, node: AnyNode) -> None:
        """Take one lock back."""
        ...

    def evict(self, count: int) -> int:
        """Free at least `count` slots if that many are evictable; returns how many were freed."""
        ...
