"""Attention the plain way: every lane alone, over its whole context. What `tree_attention` must agree with.

Slow, without tricks, and usable in float64.
"""

from collections.abc import Sequence, Set
from dataclasses import dataclass

import numpy as np
import torch

from promptlang.kernels.lane import AttentionLane


@dataclass(frozen=True)
class ReferenceLane:
    """One sequence.

    Attributes:
        rows: its new tokens in the packed batch.
        slots: int64 [positions], of all its positions in order.
        back: int64 [rows, positions], how far before each row each position is.
    """

    rows: slice
    slots: torch.Tensor
    back: torch.Tensor


@dataclass(frozen=True)
class ReferencePlan:
    """All sequences of a step, and where their new tokens' keys and values go: int64 [T]."""

    lanes: tuple[ReferenceLane, ...]
    slots: torch.Tensor


class ReferenceAttention:
    """See `AttentionBackend`.

    Args:
        device: where keys and values are.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def plan(self, lanes: Sequence[AttentionLane], windows: Set[int | None]) -> ReferencePlan:
        """See `AttentionBackend.plan`."""
        planned, row = [], 0
        for lane in lanes:
            rows = slice(row, row + len(lane.slots))
            planned.append(self._lane(lane, rows))
            row = rows.stop
        return ReferencePlan(tuple(planned), torch.cat([lane.slots[-_count(lane.rows) :] for lane in planned]))

    def _lane(self, lane: AttentionLane, rows: slice) -> ReferenceLane:
        runs = [np.arange(start, start + length) for start, length in lane.context]
        slots = torch.from_numpy(np.concatenate([*runs, lane.slots]).astype(np.int64)).to(self.device)
        positions = torch.arange(len(slots), device=self.device)
        return ReferenceLane(rows, slots, positions[-_count(rows) :, None] - positions)

    def store(
        self,
        plan: ReferencePlan,
        new_keys: torch.Tensor,
        new_values: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        """See `AttentionBackend.store`."""
        keys[:, plan.slots] = new_keys
        values[:, plan.slots] = new_values

    def attend(
        self,
        plan: ReferencePlan,
        query: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        scale: float,
        *,
        window: int | None = None,
        cap: float | None = None,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """See `AttentionBackend.attend`."""
        groups = query.shape[0] // keys.shape[0]
        outputs = []
        for lane in plan.lanes:
            lane_keys = keys[:, lane.slots].repeat_interleave(groups, 0)
            lane_values = values[:, lane.slots].repeat_interleave(groups, 0)
            scores = query[:, lane.rows] @ lane_keys.transpose(1, 2) * scale
            if cap is not None:
                scores = cap * torch.tanh(scores / cap)
            sees = (lane.back >= 0) & (lane.back < (window or len(lane.slots)))
            scores = scores.masked_fill(~sees, float("-inf"))
            if sinks is not None:
                scores = torch.cat([scores, sinks.to(scores)[:, None, None].expand(-1, scores.shape[1], 1)], dim=-1)
            weights = scores.softmax(-1)[..., : len(lane.slots)]
            outputs.append(weights @ lane_values)
        return torch.cat(outputs, dim=1).transpose(0, 1)


def _count(rows: slice) -> int:
    count: int = rows.stop - rows.start
    return count
