"""Attention of a batch whose sequences are paths in one tree: what they share is read once.

A plan is made once for each step (`planner`), then run for each layer without further decisions.

Every part of a plan gives, for each query, the attention over some of its keys together with the log of the sum of
exponentials of that part. Two parts merge exactly (Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018; Ye et al., "Cascade inference", 2024). A query head group reads its key/value head once: the
group's heads are rows of one product.

Results are equal to attention of each sequence alone up to rounding: which parts a context is cut into
depends on the sequence's neighbours, so the last bits do too. Running one plan twice on the same data gives
the same bits.
"""

from collections.abc import Sequence, Set
from typing import NamedTuple

import torch
from torch.nn.functional import embedding

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.plan import HIDDEN, AttentionPlan, CausalPart, PaddedPart, Part, SlotIndex
from promptlang.kernels.planner import plan


class _Scores(NamedTuple):
    """How the product of a query and a key becomes a score: scaled, then bent to within the cap."""

    scale: float
    cap: float | None


class TreeAttention:
    """Attention in torch's own operations; see `AttentionBackend`.

    Args:
        device: where keys and values are.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def plan(self, lanes: Sequence[AttentionLane], windows: Set[int | None]) -> AttentionPlan:
        """See `AttentionBackend.plan`."""
        return plan(lanes, windows, self.device)

    def store(
        self,
        plan: AttentionPlan,
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
        plan: AttentionPlan,
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
        groups = heads // kv_heads
        scores = _Scores(scale, cap)
        # [KV heads, T, groups, size]: rows that read the same keys lie side by side.
        folded = query.view(kv_heads, groups, rows, size).transpose(1, 2).contiguous()
        state = _State(rows)
        parts = plan.windows[window]
        for part in parts.own:
            state.put(part.rows, *_run(part, folded, keys, values, scores))
        for part in parts.more:
            state.merge(part.rows, *_run(part, folded, keys, values, scores))
        if sinks is not None:
            state.drain(sinks.view(kv_heads, groups).t())
        return state.output.transpose(1, 2).reshape(rows, heads, size).to(query.dtype)


class _State:
    """What every query has seen so far.

    Attributes:
        output: float [T, groups, KV heads, head size].
        lse: float32 [T, groups, KV heads], the log of the sum of exponentials of the scores.
    """

    output: torch.Tensor
    lse: torch.Tensor

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._is_empty = True

    def put(self, rows: SlotIndex, output: torch.Tensor, lse: torch.Tensor) -> None:
        """The first part of some rows."""
        if isinstance(rows, slice) and rows.stop - rows.start == self._rows:
            self.output, self.lse = output, lse
            return
        if self._is_empty:
            self.output = output.new_empty(self._rows, *output.shape[1:])
            self.lse = lse.new_empty(self._rows, *lse.shape[1:])
            self._is_empty = False
        self.output[rows] = output
        self.lse[rows] = lse

    def merge(self, rows: slice, output: torch.Tensor, lse: torch.Tensor) -> None:
        """A further part of some rows."""
        before = self.lse[rows]
        weight = torch.sigmoid(lse - before).unsqueeze(-1)
        self.output[rows].lerp_(output, weight)
        torch.logaddexp(before, lse, out=before)

    def drain(self, sinks: torch.Tensor) -> None:
        """A last part that every row sees: one key with the score `sinks` [groups, KV heads] and no value."""
        self.output = self.output * torch.sigmoid(self.lse - sinks.float()).unsqueeze(-1)


_Partial = tuple[torch.Tensor, torch.Tensor]
"""Output [rows, groups, KV heads, size] and log-sum-exp [rows, groups, KV heads] of one part."""


def _run(
    part: Part | CausalPart | PaddedPart,
    folded: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scores: _Scores,
) -> _Partial:
    part_keys, part_values = _read(keys, values, part.slots)
    if isinstance(part, PaddedPart):
        return _run_padded(_rows(folded, part.rows), part_keys, part_values, part.mask, scores)
    query = folded[:, part.rows]
    if isinstance(part, CausalPart):
        return _run_by_row(query, part_keys, part_values, None, scores)
    if part.mask is not None:
        return _run_by_row(query, part_keys, part_values, part.mask, scores)
    return _run_full(query, part_keys, part_values, scores)


def _read(keys: torch.Tensor, values: torch.Tensor, slots: SlotIndex) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of some slots: a view where they lie side by side, else a copy."""
    if isinstance(slots, slice):
        return keys[:, slots], values[:, slots]
    # Rows of a matrix: torch copies those with all cores, unlike slices along a middle dimension.
    kv_heads, size, width = keys.shape
    rows = slots + torch.arange(0, kv_heads * size, size, device=keys.device)[:, None]
    return embedding(rows, keys.view(-1, width)), embedding(rows, values.view(-1, width))


def _rows(folded: torch.Tensor, rows: SlotIndex) -> torch.Tensor:
    return folded[:, rows] if isinstance(rows, slice) else folded.index_select(1, rows)


def _run_full(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scores: _Scores) -> _Partial:
    kv_heads, rows, groups, size = query.shape
    output, lse = _attention(
        query.reshape(1, kv_heads, rows * groups, size), keys[None], values[None], None, False, scores
    )
    by_row = (rows, groups, kv_heads)
    return output[0].transpose(0, 1).view(*by_row, size), lse[0].t().view(by_row)


def _run_by_row(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor | None, scores: _Scores
) -> _Partial:
    """Where rows see different keys: by the mask, or causally without one.

    Groups become heads that share their keys by a stride of zero, so that what a mask counts are rows.
    """
    shared = (-1, query.shape[2], -1, -1)
    output, lse = _attention(
        query.transpose(1, 2),
        keys[:, None].expand(shared),
        values[:, None].expand(shared),
        None if mask is None else mask[None, None],
        mask is None,
        scores,
    )
    return output.permute(2, 1, 0, 3), lse.permute(2, 1, 0)


def _run_padded(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, scores: _Scores
) -> _Partial:
    kv_heads, _, groups, size = query.shape
    lanes, queries, length = mask.shape
    bias = mask[:, None, :, None].expand(-1, -1, -1, groups, -1).reshape(lanes, 1, queries * groups, length)
    by_lane = (kv_heads, lanes, -1, size)
    output, lse = _attention(
        query.reshape(by_lane).transpose(0, 1),
        keys.view(by_lane).transpose(0, 1),
        values.view(by_lane).transpose(0, 1),
        bias,
        False,
        scores,
    )
    rows = (lanes * queries, groups, kv_heads)
    return output.transpose(1, 2).reshape(*rows, size), lse.transpose(1, 2).reshape(rows)


def _attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scores: _Scores,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention with its log-sum-exp.

    Args:
        query: [batch, heads, rows, size].
        keys, values: [batch, heads, length, size].
        mask: [batch or 1, 1, rows, length], added to the scores.
        causal: row i sees keys up to i.
        scores: how they are made.

    Returns:
        float32 output [batch, heads, rows, size] and log-sum-exp [batch, heads, rows].
    """
    if query.device.type == "cpu" and query.dtype is not torch.float64 and scores.cap is None:
        output, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query,
            keys,
            values,
            0.0,
            causal,
            attn_mask=None if mask is None else _as(query.dtype, mask),
            scale=scores.scale,
        )
        return output.float(), lse
    return _plain_attention(query, keys, values, mask, causal, scores)


def _as(dtype: torch.dtype, mask: torch.Tensor) -> torch.Tensor:
    return mask if dtype is mask.dtype else mask.clamp_min(torch.finfo(dtype).min).to(dtype)


def _plain_attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scores: _Scores,
) -> tuple[torch.Tensor, torch.Tensor]:
    """See `_attention`."""
    raw = (query @ keys.transpose(-1, -2)).float() * scores.scale
    if scores.cap is not None:
        raw = torch.tanh(raw / scores.cap) * scores.cap
    if mask is not None:
        raw = raw + mask
    if causal:
        hidden = torch.ones(raw.shape[-2:], dtype=torch.bool, device=raw.device).triu(1)
        raw = raw.masked_fill(hidden, HIDDEN)
    lse = raw.logsumexp(-1)
    return (raw - lse.unsqueeze(-1)).exp() @ values.float(), lse
