"""Keys that lie side by side, and how much of them a window shows."""

import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from promptlang.kernels.lane import AttentionLane

SlotRuns = tuple[tuple[int, int], ...]
"""Slots as (start, length), in the order of their positions."""


class Piece(NamedTuple):
    """Keys side by side: slots from `start`, positions from `position`."""

    start: int
    length: int
    position: int


def length(runs: SlotRuns) -> int:
    """How many slots there are."""
    return sum(length for _, length in runs)


def joined(runs: SlotRuns, position: int) -> list[Piece]:
    """The same slots in as few pieces as possible; `position` is that of the first."""
    pieces: list[Piece] = []
    for start, length in runs:
        if pieces and pieces[-1].start + pieces[-1].length == start:
            last = pieces.pop()
            pieces.append(Piece(last.start, last.length + length, last.position))
        else:
            pieces.append(Piece(start, length, position))
        position += length
    return pieces


def slot_array(pieces: Sequence[Piece]) -> npt.NDArray[np.int64]:
    """The slots of all keys, int64 [keys]."""
    return np.concatenate([np.arange(piece.start, piece.start + piece.length) for piece in pieces])


def position_array(pieces: Sequence[Piece]) -> npt.NDArray[np.int64]:
    """The positions of all keys, int64 [keys]."""
    return np.concatenate([np.arange(piece.position, piece.position + piece.length) for piece in pieces])


class View:
    """Which keys the rows of a batch see: none after themselves, and none too far back.

    Args:
        lanes: of the batch.
        window: how many positions a token sees, itself and those just before it; None: all.
    """

    def __init__(self, lanes: Sequence[AttentionLane], window: int | None) -> None:
        self._last_seen = np.concatenate([np.arange(lane.start, lane.start + len(lane.slots)) for lane in lanes])
        self._first_seen = None if window is None else self._last_seen - window + 1

    def cut(self, rows: slice, pieces: Sequence[Piece]) -> list[Piece]:
        """Drop what none of the rows see for its distance, and part what only some see from what all see."""
        if self._first_seen is None:
            return list(pieces)
        some, all_ = self._borders(rows)
        return [piece for part in pieces for piece in (*_between(part, some, all_), *_between(part, all_, sys.maxsize))]

    def hides(self, rows: slice, pieces: Sequence[Piece]) -> bool:
        """Whether there is a key among them that a row doesn't see."""
        last = max(piece.position + piece.length for piece in pieces) - 1
        return bool(last > self._last_seen[rows].min()) or self.outgrows(rows, pieces)

    def outgrows(self, rows: slice, pieces: Sequence[Piece]) -> bool:
        """Whether there is a key among them that is too far back for a row."""
        return self._first_seen is not None and any(piece.position < self._borders(rows)[1] for piece in pieces)

    def sees(self, rows: slice, positions: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Which keys, by position, each row sees: [rows, keys]."""
        seen: npt.NDArray[np.bool_] = positions <= self._last_seen[rows, None]
        return seen if self._first_seen is None else seen & (positions >= self._first_seen[rows, None])

    def _borders(self, rows: slice) -> tuple[int, int]:
        """The first positions that one row sees, and that all see."""
        assert self._first_seen is not None
        seen = self._first_seen[rows]
        return int(seen.min()), int(seen.max())


def _between(piece: Piece, low: int, high: int) -> list[Piece]:
    """The positions of a piece from `low` up to `high`: one piece, or none."""
    first, end = max(piece.position, low), min(piece.position + piece.length, high)
    return [Piece(piece.start + first - piece.position, end - first, first)] if first < end else []
