"""What one model pass gets: lanes of new tokens, packed into one row."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from promptlang.kernels.backend import AttentionBackend
from promptlang.kernels.lane import AttentionLane
from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.cache.lane import Lane


@dataclass(frozen=True)
class Batch:
    """Lanes packed for the model. Lanes are laid out so that those with a common prefix stand side by side.

    Attributes:
        tokens, positions: int64 [T], in packed order.
        rows: int64 [R], the packed rows whose logits are wanted, in the order of the lanes as they were
            given.
        backend: computes attention.
        plan: how, as the backend says.
    """

    tokens: torch.Tensor
    positions: torch.Tensor
    rows: torch.Tensor
    backend: AttentionBackend[Any]
    plan: Any

    def attend(
        self,
        pool: KvPool,
        layer: int,
        query: torch.Tensor,
        new_keys: torch.Tensor,
        new_values: torch.Tensor,
        scale: float,
        *,
        window: int | None = None,
        cap: float | None = None,
        sinks: torch.Tensor | None = None,
    ) -> torch.Tensor:
        """One layer: keep the new tokens' keys and values, then attend to all that each token sees.

        Args:
            pool: where keys and values are kept.
            layer: which layer.
            query: [heads, T, head size].
            new_keys, new_values: [KV heads, T, head size].
            scale, window, cap, sinks: see `AttentionBackend.attend`.

        Returns:
            [T, heads, head size].
        """
        keys, values = pool.keys[layer], pool.values[layer]
        self.backend.store(self.plan, new_keys, new_values, keys, values)
        return self.backend.attend(self.plan, query, keys, values, scale, window=window, cap=cap, sinks=sinks)


def build_batch(lanes: Sequence[Lane], backend: AttentionBackend[Any], windows: Sequence[int | None] = ()) -> Batch:
    """Pack lanes into one batch, on the backend's device.

    Args:
        lanes: at least one; no two with a slot in common among their new tokens.
        backend: will compute attention.
        windows: of the model's layers, as in `ModelShape.windows`.
    """
    order = sorted(range(len(lanes)), key=lambda index: lanes[index].context)
    packed = [lanes[index] for index in order]
    device = backend.device
    return Batch(
        tokens=torch.tensor([token for lane in packed for token in lane.tokens], device=device),
        positions=_integers([np.arange(lane.start, lane.start + len(lane.tokens)) for lane in packed], device),
        rows=torch.tensor(_wanted_rows(lanes, order), dtype=torch.int64, device=device),
        backend=backend,
        plan=backend.plan([AttentionLane(lane.slots, lane.context) for lane in packed], set(windows) or {None}),
    )


def _integers(arrays: Sequence[npt.NDArray[np.integer]], device: torch.device) -> torch.Tensor:
    return torch.from_numpy(np.concatenate(arrays).astype(np.int64)).to(device)


def _wanted_rows(lanes: Sequence[Lane], order: list[int]) -> list[int]:
    first, row = {}, 0
    for index in order:
        first[index] = row
        row += len(lanes[index].tokens)
    rows: list[int] = []
    for index, lane in enumerate(lanes):
        end = first[index] + len(lane.tokens)
        rows += range(end - lane.rows, end)
    return rows
