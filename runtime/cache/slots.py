"""KV slots: which are free, and who gets them.

A slot is the place of one token's keys and values in the pool. Slots are given out in contiguous ascending
runs where possible, so that what is stored together can be read as one view.
"""

from bisect import bisect_left, insort
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

Slots: TypeAlias = npt.NDArray[np.int32]


class SlotRun(NamedTuple):
    """`length` consecutive slots from `start` on."""

    start: int
    length: int


def runs(slots: Slots) -> tuple[SlotRun, ...]:
    """Cut a slot array into maximal runs of consecutive slots.

    Args:
        slots: int32 [N], in the order of their tokens.

    Returns:
        The runs in that order; their lengths add up to N.
    """
    if not len(slots):
        return ()
    borders = np.flatnonzero(np.diff(slots) != 1) + 1
    starts = [0, *borders.tolist()]
    ends = [*borders.tolist(), len(slots)]
    return tuple(SlotRun(int(slots[start]), end - start) for start, end in zip(starts, ends, strict=True))


def extended(known: tuple[SlotRun, ...], slots: Slots) -> tuple[SlotRun, ...]:
    """The runs of some slots and of `slots` (int32 [N]) behind them."""
    more = (SlotRun(int(slots[0]), 1),) if len(slots) == 1 else runs(slots)
    if not known or not more or known[-1].start + known[-1].length != more[0].start:
        return known + more
    return (*known[:-1], SlotRun(known[-1].start, known[-1].length + more[0].length), *more[1:])


class SlotAllocator:
    """Gives out the slots 0 to `size - 1` and takes them back.

    Free slots are kept as maximal runs, by position and by length, so that a run is found, taken and merged
    by binary search.

    Args:
        size: number of slots.

    Attributes:
        size: number of slots.
        available: number of free slots.
    """

    def __init__(self, size: int) -> None:
        if size < 1:
            raise ValueError(f"a pool needs at least one slot, not {size}")
        self.size = size
        self.available = 0
        self._starts: list[int] = []
        self._lengths: dict[int, int] = {}
        self._by_length: list[tuple[int, int]] = []
        self._add(SlotRun(0, size))

    def allocate(self, count: int) -> Slots | None:
        """Take slots: from the smallest free run that holds them all, else from several, the largest first.

        Args:
            count: how many.

        Returns:
            int32 [count], or None where fewer are free.
        """
        if count < 0:
            raise ValueError(f"can't allocate {count} slots")
        if count > self.available:
            return None
        parts: list[Slots] = []
        while count:
            fit = min(bisect_left(self._by_length, (count, 0)), len(self._by_length) - 1)
            length, start = self._by_length[fit]
            taken = min(count, length)
            self._take(start, taken)
            parts.append(np.arange(start, start + taken, dtype=np.int32))
            count -= taken
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    def extend(self, after: int, count: int) -> bool:
        """Take the `count` slots right behind slot `after`, which the caller owns.

        Returns:
            Whether they were free; where not, nothing is taken.
        """
        if self._lengths.get(after + 1, 0) < count:
            return False
        if count:
            self._take(after + 1, count)
        return True

    def free(self, slots: Slots) -> None:
        """Give slots back, in any order.

        Args:
            slots: int32 [N].

        Raises:
            ValueError: a slot is out of range, named twice or already free; then none is freed.
        """
        given = runs(np.sort(slots))
        end = 0
        for run in given:
            if run.start < 0 or run.start + run.length > self.size:
                raise ValueError(
                    f"slots {run.start} to {run.start + run.length - 1} are not all in a pool of {self.size}"
                )
            if run.start < end or self._overlaps(run):
                raise ValueError(
                    f"slots {run.start} to {run.start + run.length - 1}: some are free already or named twice"
                )
            end = run.start + run.length
        for run in given:
            self._add(self._merged(run))

    def free_slots(self) -> Slots:
        """All free slots, int32, ascending."""
        parts = [np.arange(start, start + self._lengths[start], dtype=np.int32) for start in self._starts]
        return np.concatenate(parts) if parts else np.empty(0, np.int32)

    def _overlaps(self, run: SlotRun) -> bool:
        """Whether a slot of the run is free."""
        following = bisect_left(self._starts, run.start + run.length)
        if not following:
            return False
        start = self._starts[following - 1]
        return start + self._lengths[start] > run.start

    def _merged(self, run: SlotRun) -> SlotRun:
        """The run with its free neighbours, which are taken off the lists."""
        start, end = run.start, run.start + run.length
        at = bisect_left(self._starts, start)
        if end in self._lengths:
            end += self._remove(end)
        if at and self._starts[at - 1] + self._lengths[self._starts[at - 1]] == start:
            start = self._starts[at - 1]
            self._remove(start)
        return SlotRun(start, end - start)

    def _take(self, start: int, count: int) -> None:
        """Take the first `count` slots of the free run at `start`."""
        length = self._remove(start)
        if length > count:
            self._add(SlotRun(start + count, length - count))

    def _add(self, run: SlotRun) -> None:
        insort(self._starts, run.start)
        self._lengths[run.start] = run.length
        insort(self._by_length, (run.length, run.start))
        self.available += run.length

    def _remove(self, start: int) -> int:
        length = self._lengths.pop(start)
        del self._starts[bisect_left(self._starts, start)]
        del self._by_length[bisect_left(self._by_length, (length, start))]
        self.available -= length
        return length
