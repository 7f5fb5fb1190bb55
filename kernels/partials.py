"""Two Triton kernels: attention of some queries over some keys, and the merge of what those give.

`partial_attention`: a program takes one item and one head of keys. It reads the item's queries, for all the heads that
share the keys' head, as the rows of one tile, then goes through the keys once, and keeps for each row a running
maximum, a sum and a weighted sum of values (Milakov and Gimelshein, arXiv:1805.02867; Dao et al., "FlashAttention",
arXiv:2205.14135). It writes the average and the log of the sum of exponentials, float32.

`merge`: a program takes one query and one head. It reads the partial results in the order of their keys and writes
their average, weighted by those sums, in the model's type.

Tiles: see `tiles`. With 128 keys in one, registers would spill at a head size of 128.
"""

import triton
import triton.language as tl


@triton.jit
def partial_attention(
    query,
    keys,
    values,
    slots,
    positions,
    items,
    output,
    lse,
    scale,
    cap,
    query_head,
    query_row,
    key_head,
    key_slot,
    GROUPS: tl.constexpr,
    SIZE: tl.constexpr,
    PADDED_SIZE: tl.constexpr,
    ROWS: tl.constexpr,
    KEYS: tl.constexpr,
    WINDOW: tl.constexpr,
    HAS_CAP: tl.constexpr,
):
    """One item by one head of keys; the grid is [items, KV heads].

    Args:
        query: [heads, T, SIZE], with strides `query_head` and `query_row`.
        keys, values: [KV heads, slots, SIZE], with strides `key_head` and `key_slot`.
        slots: int32 [keys], of the plan's keys.
        positions: int32 [T], of the queries.
        items: int32 [items, 6]; see `flat_plan.ITEM`.
        output: float32 [partial results, heads, SIZE].
        lse: float32 [partial results, heads].
        scale, cap: as in `AttentionBackend.attend`.
        GROUPS: query heads a head of keys.
        PADDED_SIZE, ROWS, KEYS: of the tiles, powers of two.
        WINDOW: how many positions a token sees; 0: all.
    """
    item = items + tl.program_id(0) * 6
    head = tl.program_id(1)
    heads = tl.num_programs(1) * GROUPS
    first_row = tl.load(item)
    row_count = tl.load(item + 1)
    first_key = tl.load(item + 2)
    key_count = tl.load(item + 3)
    first_position = tl.load(item + 4)
    first_part = tl.load(item + 5)

    tile = tl.arange(0, ROWS)
    row, group = tile // GROUPS, tile % GROUPS
    is_row = row < row_count
    size = tl.arange(0, PADDED_SIZE)
    is_size = size < SIZE
    q = tl.load(
        query
        + (head * GROUPS + group).to(tl.int64)[:, None] * query_head
        + (first_row + row).to(tl.int64)[:, None] * query_row
        + size[None, :],
        mask=is_row[:, None] & is_size[None, :],
        other=0.0,
    )
    position = tl.load(positions + first_row + row, mask=is_row, other=0)

    largest = tl.full([ROWS], -1e30, tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    average = tl.zeros([ROWS, PADDED_SIZE], tl.float32)
    for start in range(0, key_count, KEYS):
        key = start + tl.arange(0, KEYS)
        is_key = key < key_count
        slot = tl.load(slots + first_key + key, mask=is_key, other=0).to(tl.int64)
        place = head.to(tl.int64) * key_head + slot * key_slot
        k = tl.load(keys + place[None, :] + size[:, None], mask=is_key[None, :] & is_size[:, None], other=0.0)
        score = tl.dot(q, k, input_precision="ieee") * scale
        if HAS_CAP:
            score = cap * (2 * tl.sigmoid(2 * score / cap) - 1)
        ago = position[:, None] - (first_position + key)[None, :]
        sees = is_key[None, :] & (ago >= 0)
        if WINDOW > 0:
            sees = sees & (ago < WINDOW)
        score = tl.where(sees, score, -1e30)
        larger = tl.maximum(largest, tl.max(score, 1))
        weight = tl.where(sees, tl.exp(score - larger[:, None]), 0.0)
        shrink = tl.exp(largest - larger)
        v = tl.load(values + place[:, None] + size[None, :], mask=is_key[:, None] & is_size[None, :], other=0.0)
        total = total * shrink + tl.sum(weight, 1)
        average = average * shrink[:, None] + tl.dot(weight.to(v.dtype), v, input_precision="ieee")
        largest = larger

    seen = total > 0
    average = average / tl.where(seen, total, 1.0)[:, None]
    part = (first_part + row).to(tl.int64) * heads + head * GROUPS + group
    tl.store(output + part[:, None] * SIZE + size[None, :], average, mask=is_row[:, None] & is_size[None, :])
    tl.store(lse + part, tl.where(seen, largest + tl.log(tl.where(seen, total, 1.0)), -1e30), mask=is_row)


@triton.jit
def merge(
    output,
    lse,
    first_parts,
    parts,
    sinks,
    merged,
    SIZE: tl.constexpr,
    PADDED_SIZE: tl.constexpr,
    HAS_SINKS: tl.constexpr,
):
    """One query's head; the grid is [T, heads].

    Args:
        output, lse: as `partial_attention` writes them.
        first_parts: int32 [T + 1], where a query's parts begin in `parts`.
        parts: int32 [partial results].
        sinks: [heads], the score of one more key, whose value is zero; not read without.
        merged: [T, heads, SIZE].
    """
    row, head = tl.program_id(0), tl.program_id(1)
    heads = tl.num_programs(1)
    size = tl.arange(0, PADDED_SIZE)
    is_size = size < SIZE
    largest = -1e30
    total = 0.0
    if HAS_SINKS:
        largest = tl.load(sinks + head).to(tl.float32)
        total = 1.0
    average = tl.zeros([PADDED_SIZE], tl.float32)
    for at in range(tl.load(first_parts + row), tl.load(first_parts + row + 1)):
        part = tl.load(parts + at).to(tl.int64) * heads + head
        score = tl.load(lse + part)
        larger = tl.maximum(largest, score)
        shrink, weight = tl.exp(largest - larger), tl.exp(score - larger)
        total = total * shrink + weight
        average = average * shrink + weight * tl.load(output + part * SIZE + size, mask=is_size, other=0.0)
        largest = larger
    place = (row.to(tl.int64) * heads + head) * SIZE
    tl.store(merged + place + size, (average / total).to(merged.dtype.element_ty), mask=is_size)
