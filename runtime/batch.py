"""What one model pass gets: lanes of new tokens, packed into one row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt
import torch

from promptlang.kernels.plan import AttentionPlan, plan
from promptlang.runtime.cache.slots import SlotRun


@dataclass(frozen=True)
class Lane:
    """New tokens of one sequence. They see the context in full, and one another causally.

    Attributes:
        tokens: the new tokens, at least one.
        start: position of the first of them.
        slots: int32 [tokens], where their keys and values go.
        context: the slots of all positions before `start` in position order. Lanes that share a prefix name
            the very same
            leading runs: that is how a plan finds what they share.
        wants: whose logits are wanted: the last token's, every token's, or none.
    """

    tokens: Sequence[int]
    start: int
    slots: npt.NDArray[np.int32]
    context: tuple[SlotRun, ...]
    wants: Literal["last", "all", "none"] = "last"


@dataclass(frozen=True)
class Batch:
    """Lanes packed for the model. Lanes are laid out so that those with a common prefix stand side by side.

    Attributes:
        tokens, positions, slots: int64 [T], in packed order.
        plans: who attends to what, for each window that a layer of the model has.
        rows: int64 [R], the packed rows whose logits are wanted, in the order of the lanes as they were
            given.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    slots: torch.Tensor
    plans: Mapping[int | None, AttentionPlan]
    rows: torch.Tensor


def build_batch(lanes: Sequence[Lane], device: torch.device | str = "cpu", windows: Sequence[int | None] = ()) -> Batch:
    """Pack lanes into one batch.

    Args:
        lanes: at least one; no two with a slot in common among their new tokens.
        device: where the model lives.
        windows: of its layers, as in `ModelShape.windows`.
    """
    order = sorted(range(len(lanes)), key=lambda index: lanes[index].context)
    packed = [lanes[index] for index in order]
    return Batch(
        tokens=torch.tensor([token for lane in packed for token in lane.tokens], device=device),
        positions=_integers([np.arange(lane.start, lane.start + len(lane.tokens)) for lane in packed], device),
        slots=_integers([lane.slots for lane in packed], device),
        plans=_plans(packed, device, set(windows) or {None}),
        rows=torch.tensor(_wanted_rows(lanes, order), dtype=torch.int64, device=device),
    )


def _plans(
    lanes: Sequence[Lane], device: torch.device | str, windows: set[int | None]
) -> dict[int | None, AttentionPlan]:
    longest = max(lane.start + len(lane.tokens) for lane in lanes)
    # A window that nothing has outgrown yet is none: layers with and without one then share a plan.
    binding = {window: window if window is not None and window < longest else None for window in windows}
    plans = {window: plan(lanes, device, window) for window in set(binding.values())}
    return {window: plans[bound] for window, bound in binding.items()}


def _integers(arrays: Sequence[npt.NDArray[np.integer]], device: torch.device | str) -> torch.Tensor:
    return torch.from_numpy(np.concatenate(arrays).astype(np.int64)).to(device)


def _wanted_rows(lanes: Sequence[Lane], order: list[int]) -> list[int]:
    first, row = {}, 0
    for index in order:
        first[index] = row
        row += len(lanes[index].tokens)
    rows: list[int] = []
    for index, lane in enumerate(lanes):
        end = first[index] + len(lane.tokens)
        start = {"last": end - 1, "all": first[index], "none": end}[lane.wants]
        rows += range(start, end)
    return rows
