"""Who attends to what: a batch whose sequences are paths in one tree, cut into parts once a step.

lanes 0-2 ── shared run ──┬── lane 0's own tail
                          ├── lane 1's own tail      one part over the shared run, the queries
                          └── lane 2's own tail      of all three stacked; the tails apart
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from promptlang.kernels.lane import AttentionLane

SlotRuns = tuple[tuple[int, int], ...]
SlotIndex = slice | torch.Tensor

HIDDEN = -1e30
"""Added to the score of a key that a query must not see. Finite, so that a query that sees nothing of a part still has
a log-sum-exp there, one that makes the part vanish in a merge."""

# Measured inside a model's step on two CPU cores (3 KV heads of 64), where nothing is in the cache: a part
# costs about 80 µs and a merge 40 µs beside its arithmetic, a gathered token 0.25 µs. The thresholds below
# follow; a wrong one costs some percent of a step, never a result.

LONG_RUN = 192
"""A run longer than this is read in place, by a part of its own; what is shorter may be gathered."""

SHORT_RUN = 96
"""A shared run up to this length may be handed down, to be gathered with each reader's own tail ..."""

SHARED_TOKENS = 768
"""... unless its length times its readers exceeds this."""

PADDED_QUERIES = 8
"""Lanes with more new tokens than this are not padded."""


@dataclass(frozen=True)
class Part:
    """Some consecutive queries attend to some keys.

    Attributes:
        rows: the queries, as packed rows.
        slots: the keys; a slice where they lie side by side, else int64 [keys].
        mask: float32 [queries, keys], added to the scores; None where all see all.
    """

    rows: slice
    slots: SlotIndex
    mask: torch.Tensor | None = None


@dataclass(frozen=True)
class CausalPart:
    """New tokens attend to one another: each to itself and those before it."""

    rows: slice
    slots: SlotIndex


@dataclass(frozen=True)
class PaddedPart:
    """Several lanes' tails at once, each lane's queries to its own keys.

    Attributes:
        rows: the queries, [lanes * queries]; a lane with few repeats its last row.
        slots: int64 [lanes * keys].
        mask: float32 [lanes, queries, keys], added to the scores: 0 or `HIDDEN`.
    """

    rows: SlotIndex
    slots: torch.Tensor
    mask: torch.Tensor


@dataclass(frozen=True)
class AttentionPlan:
    """Who attends to what.

    Attributes:
        own: covers every row exactly once.
        more: what is merged into it, in this order.
    """

    own: tuple[Part | CausalPart | PaddedPart, ...]
    more: tuple[Part, ...]


@dataclass(frozen=True)
class _Segment:
    """Consecutive lanes (from `first` up to `end`) and the runs that they all read and nobody else does; `position` is
    that of the first key."""

    first: int
    end: int
    runs: SlotRuns
    position: int


class _Piece(NamedTuple):
    """Keys side by side: slots from `start`, positions from `position`."""

    start: int
    length: int
    position: int


def plan(
    lanes: Sequence[AttentionLane], device: torch.device | str = "cpu", window: int | None = None
) -> AttentionPlan:
    """Decide how a batch is computed.

    Args:
        lanes: in packed order. Only neighbours share: sort them by context.
        device: where the keys are.
        window: how many positions a token sees, itself and those just before it (Beltagy et al., "Longformer", 2020);
            None: all.
    """
    planner = _Planner(lanes, device, window)
    for segment in _segments(lanes):
        planner.add(segment)
    return planner.finish()


def _segments(lanes: Sequence[AttentionLane]) -> Iterator[_Segment]:
    """Cut the lanes' contexts where their readers change; the last segment of each lane is its own."""
    common = [_common(left.context, right.context) for left, right in pairwise(lanes)]
    stack: list[tuple[int, int, int, SlotRuns, int]] = [(0, len(lanes), 0, (), 0)]
    while stack:
        first, end, depth, inherited, position = stack.pop()
        if end - first == 1:
            yield _Segment(first, end, inherited + tuple(lanes[first].context[depth:]), position)
            continue
        fork = min(common[first : end - 1])
        runs = inherited + tuple(lanes[first].context[depth:fork])
        length = _length(runs)
        if length > SHORT_RUN or (end - first) * length > SHARED_TOKENS:
            yield _Segment(first, end, runs, position)
            runs, position = (), position + length
        borders = [first, *(at + 1 for at in range(first, end - 1) if common[at] == fork), end]
        stack += [(left, right, fork, runs, position) for left, right in reversed([*pairwise(borders)])]


def _common(left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]) -> int:
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return min(len(left), len(right))


def _length(runs: SlotRuns) -> int:
    return sum(length for _, length in runs)


def _joined(runs: SlotRuns, position: int) -> list[_Piece]:
    """The same slots in as few pieces as possible."""
    pieces: list[_Piece] = []
    for start, length in runs:
        if pieces and pieces[-1].start + pieces[-1].length == start:
            last = pieces.pop()
            pieces.append(_Piece(last.start, last.length + length, last.position))
        else:
            pieces.append(_Piece(start, length, position))
        position += length
    return pieces


class _Window:
    """How far back the rows of a batch see."""

    def __init__(self, lanes: Sequence[AttentionLane], width: int) -> None:
        starts = [_length(tuple(lane.context)) for lane in lanes]
        counts = [len(lane.slots) for lane in lanes]
        positions = [np.arange(start, start + count) for start, count in zip(starts, counts, strict=True)]
        self._first_seen = np.concatenate(positions) - width + 1

    def cut(self, rows: slice, pieces: Sequence[_Piece]) -> list[_Piece]:
        """Drop what none of the rows see, and part what only some see from what all see."""
        some, all_ = self._borders(rows)
        return [piece for part in pieces for piece in (*_between(part, some, all_), *_between(part, all_, sys.maxsize))]

    def hides(self, rows: slice, pieces: Sequence[_Piece]) -> bool:
        """Whether there is a key among them that a row doesn't see."""
        return any(piece.position < self._borders(rows)[1] for piece in pieces)

    def sees(self, rows: slice, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which keys, by position, are not too far back: [rows, keys]."""
        seen: npt.NDArray[np.bool_] = positions >= self._first_seen[rows, None]
        return seen

    def _borders(self, rows: slice) -> tuple[int, int]:
        """The first positions that one row sees, and that all see."""
        seen = self._first_seen[rows]
        return int(seen.min()), int(seen.max())


def _between(piece: _Piece, low: int, high: int) -> list[_Piece]:
    """The positions of a piece from `low` up to `high`: one piece, or none."""
    first, end = max(piece.position, low), min(piece.position + piece.length, high)
    return [_Piece(piece.start + first - piece.position, end - first, first)] if first < end else []


@dataclass(frozen=True)
class _Tail:
    """What is left of a lane without its long pieces: some context, and the new tokens if they are causal."""

    rows: slice
    context: tuple[_Piece, ...]
    new: tuple[_Piece, ...]

    @property
    def pieces(self) -> tuple[_Piece, ...]:
        return self.context + self.new

    @property
    def length(self) -> int:
        return sum(piece.length for piece in self.pieces)


class _Planner:
    def __init__(self, lanes: Sequence[AttentionLane], device: torch.device | str, window: int | None) -> None:
        self._lanes = lanes
        self._device = device
        self._window = None if window is None else _Window(lanes, window)
        self._row = np.cumsum([0, *(len(lane.slots) for lane in lanes)]).tolist()
        self._own: list[Part | CausalPart | PaddedPart] = []
        self._more: list[Part] = []
        self._tails: list[_Tail] = []

    def add(self, segment: _Segment) -> None:
        rows = slice(self._row[segment.first], self._row[segment.end])
        if segment.end - segment.first > 1:
            self._more += self._parts(rows, self._seen(rows, segment.runs, segment.position))
        else:
            self._add_own(rows, self._lanes[segment.first].slots, segment)

    def finish(self) -> AttentionPlan:
        if len(self._tails) == 1:
            self._add_alone(self._tails[0])
        elif self._tails:
            self._own.append(self._padded())
        return AttentionPlan(tuple(self._own), tuple(self._more))

    def _seen(self, rows: slice, runs: SlotRuns, position: int) -> list[_Piece]:
        pieces = _joined(runs, position)
        return pieces if self._window is None else self._window.cut(rows, pieces)

    def _add_own(self, rows: slice, slots: npt.NDArray[np.int32], segment: _Segment) -> None:
        """A lane's last part: its own context and its new tokens."""
        runs, new = segment.runs, _runs(slots)
        causal: list[_Piece] = []
        if len(new) == 1:  # sees all there is: its own slot is one more key
            runs += new
        else:
            causal = _joined(new, segment.position + _length(runs))
        pieces = self._seen(rows, runs, segment.position)
        tail = _Tail(rows, tuple(piece for piece in pieces if piece.length <= LONG_RUN), tuple(causal))
        parts = [self._part(rows, [piece]) for piece in pieces if piece.length > LONG_RUN]
        if not tail.pieces:
            self._own.append(parts.pop())
        elif tail.length <= LONG_RUN and len(new) <= PADDED_QUERIES:
            self._tails.append(tail)
        else:
            self._add_alone(tail)
        self._more += parts

    def _add_alone(self, tail: _Tail) -> None:
        context = [self._part(tail.rows, tail.context)] if tail.context else []
        if tail.new:
            self._own.append(self._causal(tail))
            self._more += context
        else:
            self._own += context

    def _parts(self, rows: slice, pieces: Sequence[_Piece]) -> list[Part]:
        """Long pieces in place, the short ones gathered into one part."""
        long = [[piece] for piece in pieces if piece.length > LONG_RUN]
        short = [piece for piece in pieces if piece.length <= LONG_RUN]
        return [self._part(rows, part) for part in (*long, short) if part]

    def _part(self, rows: slice, pieces: Sequence[_Piece]) -> Part:
        slots = _slots(pieces, self._device)
        if self._window is None or not self._window.hides(rows, pieces):
            return Part(rows, slots)
        return Part(rows, slots, self._mask(self._window.sees(rows, _position_array(pieces))))

    def _causal(self, tail: _Tail) -> Part | CausalPart:
        slots = _slots(tail.new, self._device)
        if self._window is None or not self._window.hides(tail.rows, tail.new):
            return CausalPart(tail.rows, slots)
        sees = np.tril(self._window.sees(tail.rows, _position_array(tail.new)))
        return Part(tail.rows, slots, self._mask(sees))

    def _padded(self) -> PaddedPart:
        tails = self._tails
        queries = max(tail.rows.stop - tail.rows.start for tail in tails)
        keys = max(tail.length for tail in tails)
        rows = np.empty((len(tails), queries), np.int64)
        slots = np.zeros((len(tails), keys), np.int64)
        sees = np.zeros((len(tails), queries, keys), np.bool_)
        for index, tail in enumerate(tails):
            count = tail.rows.stop - tail.rows.start
            place = np.minimum(np.arange(queries), count - 1)
            rows[index] = tail.rows.start + place
            slots[index, : tail.length] = _slot_array(tail.pieces)
            slots[index, tail.length :] = slots[index, 0]
            # The last query sees the whole tail, the one before it one key less, and so on; with no causal
            # key, all see all.
            hidden = count - 1 - place if tail.new else np.zeros_like(place)
            sees[index] = np.arange(keys) < (tail.length - hidden)[:, None]
            if self._window is not None:
                sees[index, :, : tail.length] &= self._window.sees(tail.rows, _position_array(tail.pieces))[place]
        return PaddedPart(
            _slots(_joined(_runs(rows.ravel()), 0), self._device),
            torch.from_numpy(slots.ravel()).to(self._device),
            self._mask(sees),
        )

    def _mask(self, sees: npt.NDArray[np.bool_]) -> torch.Tensor:
        return torch.from_numpy(np.where(sees, np.float32(0), np.float32(HIDDEN))).to(self._device)


def _slots(pieces: Sequence[_Piece], device: torch.device | str) -> SlotIndex:
    if len(pieces) == 1:
        return slice(pieces[0].start, pieces[0].start + pieces[0].length)
    return torch.from_numpy(_slot_array(pieces)).to(device)


def _slot_array(pieces: Sequence[_Piece]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.arange(piece.start, piece.start + piece.length) for piece in pieces])


def _position_array(pieces: Sequence[_Piece]) -> npt.NDArray[np.int64]:
    return np.concatenate([np.arange(piece.position, piece.position + piece.length) for piece in pieces])


def _runs(slots: npt.NDArray[np.integer]) -> SlotRuns:
    return tuple((int(slot), 1) for slot in slots)
