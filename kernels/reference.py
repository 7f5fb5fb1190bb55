"""Attention the plain way: every lane alone, over its whole context. What `tree_attention` must agree with.

Same signatures; slow, without tricks, and usable in float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from promptlang.kernels.lane import AttentionLane


@dataclass(frozen=True)
class ReferenceLane:
    """A lane's rows of the packed batch, the slots of all its positions in order, and bool [rows, positions]: which
    positions each row sees."""

    rows: slice
    slots: torch.Tensor
    sees: torch.Tensor


ReferencePlan = tuple[ReferenceLane, ...]


def plan(
    lanes: Sequence[AttentionLane], device: torch.device | str = "cpu", window: int | None = None
) -> ReferencePlan:
    """See `plan.plan`."""
    planned, row = [], 0
    for lane in lanes:
        rows = slice(row, row + len(lane.slots))
        slots = [slot for start, length in lane.context for slot in range(start, start + length)] + lane.slots.tolist()
        positions = torch.arange(len(slots), device=device)
        back = positions[-len(lane.slots) :, None] - positions
        sees = (back >= 0) & (back < (window or len(slots)))
        planned.append(ReferenceLane(rows, torch.tensor(slots, device=device), sees))
        row = rows.stop
    return tuple(planned)


def attend(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    plan: ReferencePlan,
    scale: float,
    *,
    cap: float | None = None,
    sinks: torch.Tensor | None = None,
) -> torch.Tensor:
    """See `tree_attention.attend`."""
    groups = query.shape[0] // keys.shape[0]
    outputs = []
    for lane in plan:
        lane_keys = keys[:, lane.slots].repeat_interleave(groups, 0)
        lane_values = values[:, lane.slots].repeat_interleave(groups, 0)
        scores = query[:, lane.rows] @ lane_keys.transpose(1, 2) * scale
        if cap is not None:
            scores = cap * torch.tanh(scores / cap)
        scores = scores.masked_fill(~lane.sees, float("-inf"))
        if sinks is not None:
            scores = torch.cat([scores, sinks.to(scores)[:, None, None].expand(-1, scores.shape[1], 1)], dim=-1)
        weights = scores.softmax(-1)[..., : len(lane.slots)]
        outputs.append(weights @ lane_values)
    return torch.cat(outputs, dim=1).transpose(0, 1)
