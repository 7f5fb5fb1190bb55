"""Attention the plain way: every lane alone, over its whole context. What `tree_attention` must agree with.

Same signatures; slow, without tricks, and usable in float64.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from promptlang.kernels.lane import AttentionLane


@dataclass(frozen=True)
class ReferencePlan:
    """Per lane: its rows of the packed batch, and the slots of all its positions in order."""

    lanes: tuple[tuple[slice, torch.Tensor], ...]


def plan(lanes: Sequence[AttentionLane], device: torch.device | str = "cpu") -> ReferencePlan:
    """See `tree_attention.plan`."""
    planned, row = [], 0
    for lane in lanes:
        rows = slice(row, row + len(lane.slots))
        slots = [slot for start, length in lane.context for slot in range(start, start + length)]
        planned.append((rows, torch.tensor(slots + lane.slots.tolist(), device=device)))
        row = rows.stop
    return ReferencePlan(tuple(planned))


def attend(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, plan: ReferencePlan, scale: float
) -> torch.Tensor:
    """See `tree_attention.attend`."""
    groups = query.shape[0] // keys.shape[0]
    outputs = []
    for rows, slots in plan.lanes:
        lane_keys = keys[:, slots].repeat_interleave(groups, 0)
        lane_values = values[:, slots].repeat_interleave(groups, 0)
        new = rows.stop - rows.start
        sees = torch.ones(new, len(slots), dtype=torch.bool, device=query.device).tril(len(slots) - new)
        scores = query[:, rows] @ lane_keys.transpose(1, 2) * scale
        outputs.append(scores.masked_fill(~sees, float("-inf")).softmax(-1) @ lane_values)
    return torch.cat(outputs, dim=1).transpose(0, 1)
