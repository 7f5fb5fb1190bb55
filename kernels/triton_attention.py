"""Attention of a batch whose sequences are paths in one tree, on a device that Triton compiles for.

    lanes ── flat_plan (host, once a step) ──→ items ── partial_attention ──→ partial results ── merge ──→ output

What sequences share is read once: the queries of all of them are rows of the same products.
"""

from collections.abc import Sequence, Set

import torch

from promptlang.kernels.flat_plan import FlatPlan, flat_plan
from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.partials import merge, partial_attention
from promptlang.kernels.tiles import Heads, next_power, tiles

INTERPRETED = 9
"""The compute capability that an interpreter stands in for."""


class TritonAttention:
    """See `AttentionBackend`.

    Args:
        device: where keys and values are.
        heads: of the model that is served.
    """

    def __init__(self, device: torch.device, heads: Heads) -> None:
        self.device = device
        self._heads = heads
        major = torch.cuda.get_device_capability(device)[0] if device.type == "cuda" else INTERPRETED
        self._tiles = tiles(heads, major)

    def plan(self, lanes: Sequence[AttentionLane], windows: Set[int | None]) -> FlatPlan:
        """See `AttentionBackend.plan`."""
        return flat_plan(lanes, windows, self._heads.groups, self._tiles, self.device)

    def store(
        self,
        plan: FlatPlan,
        new_keys: torch.Tensor,
        new_values: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
    ) -> None:
        """See `AttentionBackend.store`."""
        keys.index_copy_(1, plan.slots, new_keys)
        values.index_copy_(1, plan.slots, new_values)

    def attend(
        self,
        plan: FlatPlan,
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
        heads, rows, size = query.shape
        kv_heads = keys.shape[0]
        work = plan.windows[window]
        query = query if query.stride(2) == 1 else query.contiguous()
        output = query.new_empty(len(work.parts), heads, size, dtype=torch.float32)
        lse = query.new_empty(len(work.parts), heads, dtype=torch.float32)
        sizes = {"SIZE": size, "PADDED_SIZE": max(16, next_power(size))}
        for items in work.launches:
            partial_attention[len(items.table), kv_heads](
                query,
                keys,
                values,
                work.slots,
                plan.positions,
                items.table,
                output,
                lse,
                scale,
                cap or 0.0,
                *query.stride()[:2],
                *keys.stride()[:2],
                GROUPS=heads // kv_heads,
                ROWS=items.tile.rows,
                KEYS=items.tile.keys,
                WINDOW=window or 0,
                HAS_CAP=cap is not None,
                num_warps=items.tile.warps,
                num_stages=items.tile.stages,
                **sizes,
            )
        merged = query.new_empty(rows, heads, size)
        merge[rows, heads](
            output, lse, work.first_parts, work.parts, sinks if sinks is not None else lse, merged,
            HAS_SINKS=sinks is not None, **sizes,
        )  # fmt: skip
        return merged
