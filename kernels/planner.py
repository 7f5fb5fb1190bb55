"""How a step's batch is cut into parts: what is shared, what is read in place, what is gathered."""

from collections.abc import Sequence, Set
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
import torch

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.pieces import Piece, SlotRuns, View, joined, length, position_array, slot_array
from promptlang.kernels.plan import HIDDEN, AttentionPlan, CausalPart, PaddedPart, Part, SlotIndex, WindowPlan
from promptlang.kernels.segments import Segment, Shortest, segments

# What decides is how long things take beside one another, in tokens: the time of copying one token's keys and values
# out of memory. Measured inside a model's step on two CPU cores (3 KV heads of 64), where nothing is in the cache, a
# part takes 80 µs beside its arithmetic, a merge 40 µs, a copied token 0.25 µs. A wrong threshold costs some percent of
# a step, never a result.

PART_COST = 320
"""What a part costs beside its arithmetic, in tokens."""

GATHERED = 1024
"""The most tokens that several tails are gathered into: few enough to be in a core's cache still when they are attended
to, many enough for a part to be cheap beside them. So the number of parts grows with what there is to read."""

LONG_RUN = GATHERED // 2
"""A run longer than this is read in place, by a part of its own: gathering two such would fill more than a part. A part
and its merge are worth 480 tokens."""

SHORTEST = Shortest(run=96, tokens=768)
"""What is shared and shorter is gathered with each reader's own tail."""

PADDED_QUERIES = 8
"""Lanes with more new tokens than this are not padded. So many queries of one key take about as long as its copy."""

FEW_QUERIES = 40
"""Up to so many new tokens of a lane are keys like those before them, seen by position. That saves a part and a merge,
and a token's attention is rounded as if it were computed alone, which matters where it is rounded to bfloat16."""


def plan(lanes: Sequence[AttentionLane], windows: Set[int | None], device: torch.device) -> AttentionPlan:
    """Decide how a batch is computed.

    Args:
        lanes: in packed order. Only neighbours share: sort them by context.
        windows: how many positions a token sees, itself and those just before it (Beltagy et al., "Longformer", 2020);
            None: all. One for each kind of layer.
        device: where the keys are.
    """
    longest = max(lane.start + len(lane.slots) for lane in lanes)
    # A window that nothing has outgrown yet is none: layers with and without one then share their parts.
    binding = {window: window if window is not None and window < longest else None for window in windows}
    plans = {window: _plan_of(lanes, window, device) for window in set(binding.values())}
    slots = np.concatenate([lane.slots for lane in lanes]).astype(np.int64)
    return AttentionPlan(
        torch.from_numpy(slots).to(device), {window: plans[bound] for window, bound in binding.items()}
    )


def _plan_of(lanes: Sequence[AttentionLane], window: int | None, device: torch.device) -> WindowPlan:
    planner = _Planner(lanes, window, device)
    for segment in segments(lanes, SHORTEST):
        planner.add(segment)
    return planner.finish()


@dataclass(frozen=True)
class _Tail:
    """What is left of a lane without its long pieces."""

    rows: slice
    pieces: tuple[Piece, ...]

    @cached_property
    def length(self) -> int:
        return sum(piece.length for piece in self.pieces)

    @cached_property
    def queries(self) -> int:
        count: int = self.rows.stop - self.rows.start
        return count


class _Group:
    """Tails that are padded to one shape."""

    def __init__(self) -> None:
        self.tails: list[_Tail] = []
        self.queries = 0
        self.keys = 0
        self._work = 0.0

    def takes(self, tail: _Tail) -> bool:
        """Whether one more is cheaper here than in a part of its own, and finds room."""
        count, queries, keys = len(self.tails) + 1, max(self.queries, tail.queries), max(self.keys, tail.length)
        padding = count * _work(queries, keys) - self._work - _work(tail.queries, tail.length)
        return count * keys <= GATHERED and padding <= PART_COST

    def add(self, tail: _Tail) -> None:
        self.tails.append(tail)
        self.queries, self.keys = max(self.queries, tail.queries), max(self.keys, tail.length)
        self._work += _work(tail.queries, tail.length)


def _work(queries: int, keys: int) -> float:
    """Copying keys and attending to them, in tokens."""
    return keys * (1 + queries / PADDED_QUERIES)


def _groups(tails: Sequence[_Tail]) -> list[_Group]:
    """Tails of like size together."""
    groups: list[_Group] = []
    for tail in sorted(tails, key=lambda tail: (tail.queries, tail.length), reverse=True):
        if not groups or not groups[-1].takes(tail):
            groups.append(_Group())
        groups[-1].add(tail)
    return groups


class _Planner:
    def __init__(self, lanes: Sequence[AttentionLane], window: int | None, device: torch.device) -> None:
        self._lanes = lanes
        self._device = device
        self._view = View(lanes, window)
        self._row = np.cumsum([0, *(len(lane.slots) for lane in lanes)]).tolist()
        self._own: list[Part | CausalPart | PaddedPart] = []
        self._more: list[Part] = []
        self._tails: list[_Tail] = []

    def add(self, segment: Segment) -> None:
        rows = slice(self._row[segment.first], self._row[segment.end])
        if segment.end - segment.first > 1:
            self._more += self._parts(rows, self._seen(rows, segment.runs, segment.position))
        else:
            self._add_own(rows, self._lanes[segment.first].slots, segment)

    def finish(self) -> WindowPlan:
        for group in _groups(self._tails):
            if len(group.tails) == 1:
                (tail,) = group.tails
                self._own.append(self._part(tail.rows, tail.pieces))
            else:
                self._own.append(self._padded(group))
        return WindowPlan(tuple(self._own), tuple(self._more))

    def _seen(self, rows: slice, runs: SlotRuns, position: int) -> list[Piece]:
        return self._view.cut(rows, joined(runs, position))

    def _add_own(self, rows: slice, slots: npt.NDArray[np.int32], segment: Segment) -> None:
        """A lane's last part: its own context and its new tokens."""
        new = _runs(slots)
        if len(new) > FEW_QUERIES:
            self._own.append(self._causal(rows, joined(new, segment.position + length(segment.runs))))
            self._more += self._parts(rows, self._seen(rows, segment.runs, segment.position))
            return
        pieces = self._seen(rows, segment.runs + new, segment.position)
        tail = _Tail(rows, tuple(piece for piece in pieces if piece.length <= LONG_RUN))
        parts = [self._part(rows, [piece]) for piece in pieces if piece.length > LONG_RUN]
        if not tail.pieces:
            self._own.append(parts.pop())
        elif tail.length <= LONG_RUN and len(new) <= PADDED_QUERIES:
            self._tails.append(tail)
        else:
            self._own.append(self._part(tail.rows, tail.pieces))
        self._more += parts

    def _parts(self, rows: slice, pieces: Sequence[Piece]) -> list[Part]:
        """Long pieces in place, the short ones gathered into one part."""
        long = [[piece] for piece in pieces if piece.length > LONG_RUN]
        short = [piece for piece in pieces if piece.length <= LONG_RUN]
        return [self._part(rows, part) for part in (*long, short) if part]

    def _part(self, rows: slice, pieces: Sequence[Piece]) -> Part:
        slots = _slots(pieces, self._device)
        if not self._view.hides(rows, pieces):
            return Part(rows, slots)
        return Part(rows, slots, self._mask(self._view.sees(rows, position_array(pieces))))

    def _causal(self, rows: slice, new: Sequence[Piece]) -> Part | CausalPart:
        if not self._view.outgrows(rows, new):
            return CausalPart(rows, _slots(new, self._device))
        return self._part(rows, new)

    def _padded(self, group: _Group) -> PaddedPart:
        tails = sorted(group.tails, key=lambda tail: tail.rows.start)
        queries, keys = group.queries, group.keys
        rows = np.empty((len(tails), queries), np.int64)
        slots = np.zeros((len(tails), keys), np.int64)
        sees = np.zeros((len(tails), queries, keys), np.bool_)
        for index, tail in enumerate(tails):
            place = np.minimum(np.arange(queries), tail.queries - 1)
            rows[index] = tail.rows.start + place
            slots[index, : tail.length] = slot_array(tail.pieces)
            slots[index, tail.length :] = slots[index, 0]
            sees[index, :, : tail.length] = self._sees(tail)[place]
        return PaddedPart(
            _slots(joined(_runs(rows.ravel()), 0), self._device),
            torch.from_numpy(slots.ravel()).to(self._device),
            self._mask(sees),
        )

    def _sees(self, tail: _Tail) -> npt.NDArray[np.bool_]:
        if not self._view.hides(tail.rows, tail.pieces):
            return np.ones((tail.queries, 1), np.bool_)
        return self._view.sees(tail.rows, position_array(tail.pieces))

    def _mask(self, sees: npt.NDArray[np.bool_]) -> torch.Tensor:
        return torch.from_numpy(np.where(sees, np.float32(0), np.float32(HIDDEN))).to(self._device)


def _slots(pieces: Sequence[Piece], device: torch.device) -> SlotIndex:
    if len(pieces) == 1:
        return slice(pieces[0].start, pieces[0].start + pieces[0].length)
    return torch.from_numpy(slot_array(pieces)).to(device)


def _runs(slots: npt.NDArray[np.integer]) -> SlotRuns:
    return tuple((int(slot), 1) for slot in slots)
