"""A batch as a tree: what its sequences read in common, and what each reads alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.pieces import SlotRuns, length


class Shortest(NamedTuple):
    """What is worth to be read in common. A shared run that is shorter is handed down, to each of its readers.

    Attributes:
        run: runs of more tokens are.
        tokens: so are those whose length times their readers exceeds this.
    """

    run: int
    tokens: int


@dataclass(frozen=True)
class Segment:
    """Consecutive lanes (from `first` up to `end`) and the runs that they all read and nobody else does; `position` is
    that of the first key."""

    first: int
    end: int
    runs: SlotRuns
    position: int


def segments(lanes: Sequence[AttentionLane], shortest: Shortest) -> Iterator[Segment]:
    """Cut the lanes' contexts where their readers change; the last segment of each lane is its own."""
    common = [_common(left.context, right.context) for left, right in pairwise(lanes)]
    stack: list[tuple[int, int, int, SlotRuns, int]] = [(0, len(lanes), 0, (), 0)]
    while stack:
        first, end, depth, inherited, position = stack.pop()
        if end - first == 1:
            yield Segment(first, end, inherited + tuple(lanes[first].context[depth:]), position)
            continue
        fork = min(common[first : end - 1])
        runs = inherited + tuple(lanes[first].context[depth:fork])
        tokens = length(runs)
        if tokens > shortest.run or (end - first) * tokens > shortest.tokens:
            yield Segment(first, end, runs, position)
            runs, position = (), position + tokens
        borders = [first, *(at + 1 for at in range(first, end - 1) if common[at] == fork), end]
        stack += [(left, right, fork, runs, position) for left, right in reversed([*pairwise(borders)])]


def _common(left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]) -> int:
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return min(len(left), len(right))
