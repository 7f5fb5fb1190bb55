"""Which cached tokens go first when room is needed.

A policy gives each node of the radix tree a key; of all leaves that may go, the one with the smallest key
goes. A key may fall only by an event that the tree announces to its queue (the last prompt lets go, an
expected use is settled); every other event (a match, a lock) may only raise it.
"""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias


class History(Protocol):
    """What a policy may ask about a node. Times are readings of the tree's logical clock.

    Attributes:
        born: when its tokens were inserted.
        last_use: when a match, an insertion or the end of a lock last went through it.
        hits: how many matches and insertions went through it.
        uses: when running programs will read it again, in their own unit, ascending.
        is_spent: running programs had a use for it and have none any more.
    """

    @property
    def born(self) -> int: ...
    @property
    def last_use(self) -> int: ...
    @property
    def hits(self) -> int: ...
    @property
    def uses(self) -> Sequence[int]: ...
    @property
    def is_spent(self) -> bool: ...


Policy: TypeAlias = Callable[[History], tuple[int, ...]]
"""A node's key: the smallest goes first."""


def least_recently_used(node: History) -> tuple[int, ...]:
    """The longest unused goes first."""
    return (node.last_use,)


def least_frequently_used(node: History) -> tuple[int, ...]:
    """The least often used goes first, of equals the longest unused."""
    return (node.hits, node.last_use)


def first_in_first_out(node: History) -> tuple[int, ...]:
    """The oldest goes first, used or not."""
    return (node.born,)


def program_aware(node: History) -> tuple[int, ...]:
    """What running programs can't reach any more goes first, then what they say nothing about, both by
    recency; what they will read again goes last, the farthest next read first (as Belady's optimum does, with
    the program for an oracle; compare KVFlow, arXiv:2507.07400)."""
    if node.uses:
        return (2, -node.uses[0], node.last_use)
    return (0 if node.is_spent else 1, node.last_use)


POLICIES: dict[str, Policy] = {
    "lru": least_recently_used,
    "lfu": least_frequently_used,
    "fifo": first_in_first_out,
    "program": program_aware,
}


def make_policy(name: str) -> Policy:
    """The policy of that name.

    Raises:
        ValueError: there is none; the message lists those there are.
    """
    if name not in POLICIES:
        raise ValueError(f"no eviction policy is called {name!r}; there are {', '.join(POLICIES)}")
    return POLICIES[name]
