"""Who attends to what: a batch whose sequences are paths in one tree, cut into parts.

lanes 0-2 ── shared run ──┬── lane 0's own tail
                          ├── lane 1's own tail      one part over the shared run, the queries
                          └── lane 2's own tail      of all three stacked; the tails apart
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

SlotIndex = slice | torch.Tensor
"""Slots, or rows, as an index: a slice where they lie side by side, else int64."""

HIDDEN = -1e30
"""Added to the score of a key that a query must not see. Finite, so that a query that sees nothing of a part still has
a log-sum-exp there, one that makes the part vanish in a merge."""


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
class WindowPlan:
    """Who attends to what in the layers that have one window.

    Attributes:
        own: covers every row exactly once.
        more: what is merged into it, in this order.
    """

    own: tuple[Part | CausalPart | PaddedPart, ...]
    more: tuple[Part, ...]


@dataclass(frozen=True)
class AttentionPlan:
    """Who attends to what in a step.

    Attributes:
        slots: int64 [T], where the new tokens' keys and values go.
        windows: what layers with each window do.
    """

    slots: torch.Tensor
    windows: Mapping[int | None, WindowPlan]
