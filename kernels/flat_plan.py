"""A step's attention as flat arrays: what a device reads without deciding anything.

The tree of a batch is cut into items: some queries by some keys. All queries below a shared run are rows of the same
items, so that its keys are read once for all of them. Each item gives each of its queries a partial result, and a
second kernel merges those of one query (Juravsky et al., "Hydragen", arXiv:2402.05099; Yao et al., "DeFT",
arXiv:2404.00242; Ye et al., "FlashInfer", arXiv:2501.01005).

Chunks of keys end at multiples of `CHUNK` from a prompt's start, and a query's parts are merged in the order of its
keys: so the sums of a query hardly depend on its neighbours.
"""

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.pieces import joined, length, slot_array
from promptlang.kernels.segments import Segment, Shortest, segments
from promptlang.kernels.tiles import Tile, Tiles

CHUNK = 256
"""Keys of an item, at most: enough that their reading outweighs a partial result, few enough to keep a device busy."""

SHORTEST = Shortest(run=64, tokens=256)
"""What is shared and shorter costs more as partial results than it saves by being read once."""

ITEM = 6
"""Numbers of an item: first query, queries, first key, keys, position of the first key, first partial result."""

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Items:
    """What one launch computes.

    Attributes:
        table: int32 [items, ITEM].
        tile: of each.
    """

    table: torch.Tensor
    tile: Tile


@dataclass(frozen=True)
class FlatWindow:
    """Who attends to what in the layers that have one window.

    Attributes:
        launches: items by the size of their tiles.
        slots: int32 [keys], of all segments.
        first_parts: int32 [T + 1], where each query's parts begin in `parts`.
        parts: int32 [partial results], which are a query's, in the order of their keys.
    """

    launches: tuple[Items, ...]
    slots: torch.Tensor
    first_parts: torch.Tensor
    parts: torch.Tensor


@dataclass(frozen=True)
class FlatPlan:
    """Who attends to what in a step.

    Attributes:
        slots: int64 [T], where the new tokens' keys and values go.
        positions: int32 [T], of the new tokens.
        windows: what layers with each window do.
    """

    slots: torch.Tensor
    positions: torch.Tensor
    windows: dict[int | None, FlatWindow]


def flat_plan(
    lanes: Sequence[AttentionLane], windows: Set[int | None], groups: int, sizes: Tiles, device: torch.device
) -> FlatPlan:
    """Decide how a batch is computed.

    Args:
        lanes: in packed order, sorted by context.
        windows: of the layers, each once.
        groups: query heads that share a head of keys.
        sizes: of tiles.
        device: where the arrays go.
    """
    positions = np.concatenate([np.arange(lane.start, lane.start + len(lane.slots)) for lane in lanes])
    cut = list(segments(lanes, SHORTEST))
    slots = np.concatenate([lane.slots for lane in lanes]).astype(np.int64)
    return FlatPlan(
        torch.from_numpy(slots).to(device),
        torch.from_numpy(positions.astype(np.int32)).to(device),
        {window: _Cutter(lanes, positions, window, groups, sizes).cut(cut, device) for window in windows},
    )


class _Cutter:
    """Cuts segments into items.

    Args:
        lanes: of the batch.
        positions: int64 [T], of the queries.
        window: how many positions a token sees; None: all.
        groups: query heads that share a head of keys.
        sizes: of tiles.
    """

    def __init__(
        self,
        lanes: Sequence[AttentionLane],
        positions: npt.NDArray[np.int64],
        window: int | None,
        groups: int,
        sizes: Tiles,
    ) -> None:
        self._lanes = lanes
        self._positions = positions
        self._window = window
        self._narrow, self._wide = (sizes.narrow.rows // groups, sizes.wide.rows // groups)
        self._sizes = sizes
        self._rows = np.cumsum([0, *(len(lane.slots) for lane in lanes)])

    def cut(self, cut: Sequence[Segment], device: torch.device) -> FlatWindow:
        """All items of a batch."""
        keys, tables, first_key = [], [], 0
        for segment in cut:
            runs = segment.runs
            if segment.end - segment.first == 1:
                runs += tuple((int(slot), 1) for slot in self._lanes[segment.first].slots)
            slots = slot_array(joined(runs, 0)) if runs else np.empty(0, np.int64)
            tables.append(self._items(segment, first_key, length(runs)))
            keys.append(slots)
            first_key += len(slots)
        # In the order of their keys, so that a query's parts are.
        table = np.concatenate(tables)
        table = table[np.argsort(table[:, 4], kind="stable")]
        table[:, 5] = np.cumsum(table[:, 1]) - table[:, 1]
        return FlatWindow(
            tuple(self._launches(table, device)),
            _ints(np.concatenate(keys), device),
            *(_ints(array, device) for array in self._parts(table)),
        )

    def _items(self, segment: Segment, first_key: int, keys: int) -> npt.NDArray[np.int64]:
        """One segment's: tiles of its queries by chunks of its keys, without those of which nothing is seen."""
        start, end = self._rows[segment.first], self._rows[segment.end]
        tile = self._wide if end - start > self._narrow else self._narrow
        first_rows = np.arange(start, end, tile)
        rows = np.minimum(first_rows + tile, end) - first_rows
        borders = np.arange(segment.position // CHUNK + 1, (segment.position + keys - 1) // CHUNK + 1) * CHUNK
        first = np.concatenate([[segment.position], borders])
        counts = np.diff(np.append(first, segment.position + keys))
        at_row, at_key = (grid.ravel() for grid in np.meshgrid(range(len(rows)), range(len(first)), indexing="ij"))
        table = np.zeros((len(at_row), ITEM), np.int64)
        table[:, 0], table[:, 1] = first_rows[at_row], rows[at_row]
        table[:, 2], table[:, 3] = first_key + first[at_key] - segment.position, counts[at_key]
        table[:, 4] = first[at_key]
        return table[self._is_seen(table)]

    def _is_seen(self, table: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
        """Whether a query of an item sees a key of it. In an item of several lanes every key comes before every query,
        and in one of a single lane the last query is the furthest."""
        start, end = table[:, 0], table[:, 0] + table[:, 1]
        first_key, last_key = table[:, 4], table[:, 4] + table[:, 3] - 1
        borders = np.column_stack([start, end]).ravel()
        padded = np.append(self._positions, self._positions[-1])
        seen = first_key <= np.maximum.reduceat(padded, borders)[::2]
        if self._window is not None:
            seen &= last_key > np.minimum.reduceat(padded, borders)[::2] - self._window
        is_seen: npt.NDArray[np.bool_] = seen
        return is_seen

    def _launches(self, table: npt.NDArray[np.int64], device: torch.device) -> Iterator[Items]:
        """The items by the size of their tiles."""
        is_wide = table[:, 1] > self._narrow
        for tile, part in ((self._sizes.narrow, table[~is_wide]), (self._sizes.wide, table[is_wide])):
            if len(part):
                yield Items(_ints(part, device), tile)

    def _parts(self, table: npt.NDArray[np.int64]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where each query's parts begin, and which they are."""
        query = np.repeat(table[:, 0] - table[:, 5], table[:, 1]) + np.arange(table[:, 1].sum())
        counts = np.bincount(query, minlength=len(self._positions))
        return np.cumsum([0, *counts]), np.argsort(query, kind="stable")


def _ints(array: npt.NDArray[np.int64], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.int32)).to(device)
