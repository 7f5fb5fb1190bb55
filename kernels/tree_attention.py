"""Attention of a batch whose sequences are paths in one tree: what they share is read once.

A plan is made once for each step, then run for each layer without further decisions:

    lanes 0-2 ── shared run ──┬── lane 0's own tail
                              ├── lane 1's own tail      one pass over the shared run, the queries
                              └── lane 2's own tail      of all three stacked; the tails apart

Every pass gives, for each query, the attention over a part of its keys together with the log of the sum of
exponentials of that part. Two parts merge exactly (Milakov and Gimelshein, "Online normalizer calculation for
softmax", 2018; Ye et al., "Cascade inference", 2024). A query head group reads its key/value head once: the
group's heads are rows of one product.

Results are equal to attention of each sequence alone up to rounding: which parts a context is cut into
depends on the sequence's neighbours, so the last bits do too. Running one plan twice on the same data gives
the same bits.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import torch
from torch.nn.functional import embedding

from promptlang.kernels.lane import AttentionLane

Runs = tuple[tuple[int, int], ...]
Slots = slice | torch.Tensor

# Measured inside a model's step on two CPU cores (3 KV heads of 64), where nothing is in the cache: a pass
# costs about 80 µs and a merge 40 µs beside its arithmetic, a gathered token 0.25 µs. The thresholds below
# follow; a wrong one costs some percent of a step, never a result.

LONG_RUN = 192
"""A run longer than this is read in place, by a pass of its own; what is shorter may be gathered."""

SHORT_RUN = 96
"""A shared run up to this length may be handed down, to be gathered with each reader's own tail ..."""

SHARED_TOKENS = 768
"""... unless its length times its readers exceeds this."""

PADDED_QUERIES = 8
"""Lanes with more new tokens than this are not padded."""


@dataclass(frozen=True)
class Pass:
    """Some consecutive queries attend to some keys, all to all.

    Attributes:
        rows: the queries, as packed rows.
        slots: the keys; a slice where they lie side by side, else int64 [keys].
    """

    rows: slice
    slots: Slots


@dataclass(frozen=True)
class CausalPass:
    """New tokens attend to one another: each to itself and those before it."""

    rows: slice
    slots: Slots


@dataclass(frozen=True)
class PaddedPass:
    """Several lanes' tails at once, each lane's queries to its own keys.

    Attributes:
        rows: the queries, [lanes * queries]; a lane with few repeats its last row.
        slots: int64 [lanes * keys].
        mask: float32 [lanes, queries, keys], added to the scores: 0 or -inf.
    """

    rows: Slots
    slots: torch.Tensor
    mask: torch.Tensor


@dataclass(frozen=True)
class AttentionPlan:
    """Who attends to what.

    Attributes:
        own: covers every row exactly once.
        more: what is merged into it, in this order.
    """

    own: tuple[Pass | CausalPass | PaddedPass, ...]
    more: tuple[Pass, ...]


# Planning ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Segment:
    """Consecutive lanes (from `first` up to `end`) and the runs that they all read and nobody else does."""

    first: int
    end: int
    runs: Runs


def plan(lanes: Sequence[AttentionLane], device: torch.device | str = "cpu") -> AttentionPlan:
    """Decide how a batch is computed.

    Args:
        lanes: in packed order. Only neighbours share: sort them by context.
        device: where the keys are.
    """
    planner = _Planner(lanes, device)
    for segment in _segments(lanes):
        planner.add(segment)
    return planner.finish()


def _segments(lanes: Sequence[AttentionLane]) -> Iterator[_Segment]:
    """Cut the lanes' contexts where their readers change; the last segment of each lane is its own."""
    common = [_common(left.context, right.context) for left, right in pairwise(lanes)]
    stack: list[tuple[int, int, int, Runs]] = [(0, len(lanes), 0, ())]
    while stack:
        first, end, depth, inherited = stack.pop()
        if end - first == 1:
            yield _Segment(first, end, inherited + tuple(lanes[first].context[depth:]))
            continue
        fork = min(common[first : end - 1])
        runs = inherited + tuple(lanes[first].context[depth:fork])
        length = _length(runs)
        if length > SHORT_RUN or (end - first) * length > SHARED_TOKENS:
            yield _Segment(first, end, runs)
            runs = ()
        borders = [first, *(at + 1 for at in range(first, end - 1) if common[at] == fork), end]
        stack += [(left, right, fork, runs) for left, right in reversed([*pairwise(borders)])]


def _common(left: Sequence[tuple[int, int]], right: Sequence[tuple[int, int]]) -> int:
    for index, (a, b) in enumerate(zip(left, right, strict=False)):
        if a != b:
            return index
    return min(len(left), len(right))


def _length(runs: Runs) -> int:
    return sum(length for _, length in runs)


def _joined(runs: Runs) -> Runs:
    """The same slots in as few runs as possible."""
    result: list[tuple[int, int]] = []
    for start, length in runs:
        if result and result[-1][0] + result[-1][1] == start:
            result[-1] = (result[-1][0], result[-1][1] + length)
        else:
            result.append((start, length))
    return tuple(result)


@dataclass(frozen=True)
class _Tail:
    """What is left of a lane without its long runs: some context, and the new tokens if they are causal."""

    rows: slice
    context: Runs
    new: npt.NDArray[np.int32]

    @property
    def length(self) -> int:
        return _length(self.context) + len(self.new)

    def slots(self) -> npt.NDArray[np.int64]:
        return np.concatenate([_slot_array(self.context), self.new.astype(np.int64)])


class _Planner:
    def __init__(self, lanes: Sequence[AttentionLane], device: torch.device | str) -> None:
        self._lanes = lanes
        self._device = device
        self._row = np.cumsum([0, *(len(lane.slots) for lane in lanes)]).tolist()
        self._own: list[Pass | CausalPass | PaddedPass] = []
        self._more: list[Pass] = []
        self._tails: list[_Tail] = []

    def add(self, segment: _Segment) -> None:
        rows = slice(self._row[segment.first], self._row[segment.end])
        if segment.end - segment.first > 1:
            self._more += self._passes(rows, segment.runs)
        else:
            self._add_own(rows, self._lanes[segment.first], segment.runs)

    def finish(self) -> AttentionPlan:
        if len(self._tails) == 1:
            self._add_alone(self._tails[0])
        elif self._tails:
            self._own.append(self._padded())
        return AttentionPlan(tuple(self._own), tuple(self._more))

    def _add_own(self, rows: slice, lane: AttentionLane, runs: Runs) -> None:
        """A lane's last part: its own context and its new tokens."""
        new = lane.slots
        if len(new) == 1:  # sees all there is: its own slot is one more key
            runs, new = (*runs, (int(new[0]), 1)), new[:0]
        runs = _joined(runs)
        long = tuple(run for run in runs if run[1] > LONG_RUN)
        short = tuple(run for run in runs if run[1] <= LONG_RUN)
        tail = _Tail(rows, short, new)
        passes = [Pass(rows, _slots((run,), self._device)) for run in long]
        if not tail.length:
            self._own.append(passes.pop())
        elif tail.length <= LONG_RUN and len(new) <= PADDED_QUERIES:
            self._tails.append(tail)
        else:
            self._add_alone(tail)
        self._more += passes

    def _add_alone(self, tail: _Tail) -> None:
        context = [Pass(tail.rows, _slots(tail.context, self._device))] if tail.context else []
        if len(tail.new):
            self._own.append(CausalPass(tail.rows, _slots(_runs(tail.new), self._device)))
            self._more += context
        else:
            self._own += context

    def _passes(self, rows: slice, runs: Runs) -> list[Pass]:
        """Long runs in place, the short ones gathered into one pass."""
        runs = _joined(runs)
        parts = [(run,) for run in runs if run[1] > LONG_RUN]
        short = tuple(run for run in runs if run[1] <= LONG_RUN)
        return [Pass(rows, _slots(part, self._device)) for part in (*parts, short) if part]

    def _padded(self) -> PaddedPass:
        tails = self._tails
        queries = max(tail.rows.stop - tail.rows.start for tail in tails)
        keys = max(tail.length for tail in tails)
        rows = np.empty((len(tails), queries), np.int64)
        slots = np.zeros((len(tails), keys), np.int64)
        sees = np.zeros((len(tails), queries, keys), np.bool_)
        for index, tail in enumerate(tails):
            count = tail.rows.stop - tail.rows.start
            place = np.minimum(np.arange(queries), count - 1)
            rows[index] = tail.rows.start + place
            slots[index, : tail.length] = tail.slots()
            slots[index, tail.length :] = slots[index, 0]
            # The last query sees the whole tail, the one before it one key less, and so on; with no causal
            # key, all see all.
            hidden = count - 1 - place if len(tail.new) else np.zeros_like(place)
            sees[index] = np.arange(keys) < (tail.length - hidden)[:, None]
        mask = np.where(sees, np.float32(0), np.float32(-np.inf))
        return PaddedPass(
            _slots(_runs(rows.ravel()), self._device),
            torch.from_numpy(slots.ravel()).to(self._device),
            torch.from_numpy(mask).to(self._device),
        )


def _slots(runs: Runs, device: torch.device | str) -> Slots:
    runs = _joined(runs)
    if len(runs) == 1:
        start, length = runs[0]
        return slice(start, start + length)
    return torch.from_numpy(_slot_array(runs)).to(device)


def _slot_array(runs: Runs) -> npt.NDArray[np.int64]:
    if not runs:
        return np.empty(0, np.int64)
    return np.concatenate([np.arange(start, start + length) for start, length in runs])


def _runs(slots: npt.NDArray[np.integer]) -> Runs:
    return tuple((int(slot), 1) for slot in slots)


# Running -------------------------------------------------------------------------------------------------


def attend(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, plan: AttentionPlan, scale: float
) -> torch.Tensor:
    """Attention of one layer.

    Args:
        query: [heads, T, head size], T packed rows.
        keys, values: [KV heads, slots, head size]; the new tokens' are already in their slots.
        plan: of this batch.
        scale: multiplies the scores.

    Returns:
        [T, heads, head size].
    """
    heads, rows, size = query.shape
    kv_heads = keys.shape[0]
    groups = heads // kv_heads
    # [KV heads, T, groups, size]: rows that read the same keys lie side by side.
    folded = query.view(kv_heads, groups, rows, size).transpose(1, 2).contiguous()
    state = _State(rows)
    for part in plan.own:
        state.put(part.rows, *_run(part, folded, keys, values, scale))
    for part in plan.more:
        state.merge(part.rows, *_run(part, folded, keys, values, scale))
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

    def put(self, rows: Slots, output: torch.Tensor, lse: torch.Tensor) -> None:
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


Part = tuple[torch.Tensor, torch.Tensor]
"""Output [rows, groups, KV heads, size] and log-sum-exp [rows, groups, KV heads] of one pass."""


def _run(
    part: Pass | CausalPass | PaddedPass,
    folded: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    scale: float,
) -> Part:
    part_keys, part_values = _read(keys, values, part.slots)
    if isinstance(part, Pass):
        return _run_full(folded[:, part.rows], part_keys, part_values, scale)
    if isinstance(part, CausalPass):
        return _run_causal(folded[:, part.rows], part_keys, part_values, scale)
    return _run_padded(_rows(folded, part.rows), part_keys, part_values, part.mask, scale)


def _read(keys: torch.Tensor, values: torch.Tensor, slots: Slots) -> tuple[torch.Tensor, torch.Tensor]:
    """Keys and values of some slots: a view where they lie side by side, else a copy."""
    if isinstance(slots, slice):
        return keys[:, slots], values[:, slots]
    # Rows of a matrix: torch copies those with all cores, unlike slices along a middle dimension.
    kv_heads, size, width = keys.shape
    rows = slots + torch.arange(0, kv_heads * size, size, device=keys.device)[:, None]
    return embedding(rows, keys.view(-1, width)), embedding(rows, values.view(-1, width))


def _rows(folded: torch.Tensor, rows: Slots) -> torch.Tensor:
    return folded[:, rows] if isinstance(rows, slice) else folded.index_select(1, rows)


def _run_full(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float) -> Part:
    kv_heads, rows, groups, size = query.shape
    output, lse = _attention(
        query.reshape(1, kv_heads, rows * groups, size), keys[None], values[None], None, False, scale
    )
    by_row = (rows, groups, kv_heads)
    return output[0].transpose(0, 1).view(*by_row, size), lse[0].t().view(by_row)


def _run_causal(query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float) -> Part:
    """Groups become heads that share their keys by a stride of zero: the causal mask counts rows."""
    groups = query.shape[2]
    shared = (-1, groups, -1, -1)
    output, lse = _attention(
        query.transpose(1, 2), keys[:, None].expand(shared), values[:, None].expand(shared), None, True, scale
    )
    return output.permute(2, 1, 0, 3), lse.permute(2, 1, 0)


def _run_padded(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, mask: torch.Tensor, scale: float
) -> Part:
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
        scale,
    )
    rows = (lanes * queries, groups, kv_heads)
    return output.transpose(1, 2).reshape(*rows, size), lse.transpose(1, 2).reshape(rows)


def _attention(
    query: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Attention with its log-sum-exp.

    Args:
        query: [batch, heads, rows, size].
        keys, values: [batch, heads, length, size].
        mask: [batch, 1, rows, length], added to the scores.
        causal: row i sees keys up to i.
        scale: multiplies the scores.

    Returns:
        float32 output [batch, heads, rows, size] and log-sum-exp [batch, heads, rows].
    """
    if query.device.type == "cpu" and query.dtype is not torch.float64:
        output, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query,
            keys,
            values,
            0.0,
            causal,
            attn_mask=None if mask is None else mask.to(query.dtype),
            scale=scale,
        )
        return output.float(), lse
    scores = (query @ keys.transpose(-1, -2)).float() * scale
    if mask is not None:
        scores = scores + mask
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, float("-inf"))
    lse = scores.logsumexp(-1)
    return (scores - lse.unsqueeze(-1)).exp() @ values.float(), lse
