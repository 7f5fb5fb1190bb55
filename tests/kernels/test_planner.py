"""How a batch is cut: what is shared is read once, and what a plan costs grows with what there is to read."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.plan import CausalPart, PaddedPart, Part, WindowPlan
from promptlang.kernels.planner import GATHERED, PART_COST
from promptlang.kernels.tree_attention import TreeAttention

TREE = TreeAttention(torch.device("cpu"))


def plan_of(lanes: list[AttentionLane], window: int | None = None) -> WindowPlan:
    return TREE.plan(lanes, {window}).windows[window]


def lane(new: int, at: int, *context: tuple[int, int]) -> AttentionLane:
    return AttentionLane(np.arange(at, at + new, dtype=np.int32), context)


def test_a_shared_prefix_is_read_once_for_all_that_share_it() -> None:
    plan = plan_of([lane(1, 1000 + 50 * index, (0, 800)) for index in range(16)])
    assert [part for part in plan.more if part.slots == slice(0, 800)] == [Part(slice(0, 16), slice(0, 800))]
    assert [type(part) for part in plan.own] == [PaddedPart]


def test_nested_prefixes_are_each_read_once() -> None:
    left, right = (800, 300), (1200, 300)
    lanes = [lane(1, 2000 + 9 * index, (0, 800), side) for index, side in enumerate([left, left, right, right])]
    plan = plan_of(lanes)
    assert sorted(plan.more, key=str) == [
        Part(slice(0, 2), slice(800, 1100)),
        Part(slice(0, 4), slice(0, 800)),
        Part(slice(2, 4), slice(1200, 1500)),
    ]


def test_neighbouring_runs_are_read_in_one_part() -> None:
    plan = plan_of([lane(1, 1000 + 9 * index, (0, 300), (300, 300)) for index in range(2)])
    assert [part.slots for part in plan.more] == [slice(0, 600)]


def test_one_sequence_in_one_run_is_one_part() -> None:
    plan = plan_of([lane(1, 500, (0, 500))])
    assert (plan.own, plan.more) == ((Part(slice(0, 1), slice(0, 501)),), ())


@pytest.mark.parametrize("context", [100, 500, 700])
@pytest.mark.parametrize("new", [2, 9, 40])
def test_a_few_new_tokens_are_keys_like_those_before_them(context: int, new: int) -> None:
    """So the parts are those of one token alone."""
    plan = plan_of([lane(new, context, (0, context))])
    (part,) = plan.own
    assert isinstance(part, Part)
    assert (part.slots, plan.more) == (slice(0, context + new), ())
    assert part.mask is not None
    assert ((part.mask == 0).sum(1) == torch.arange(context + 1, context + new + 1)).all()


def test_a_long_prompt_is_a_causal_part_in_place() -> None:
    plan = plan_of([lane(300, 0)])
    assert plan.own == (CausalPart(slice(0, 300), slice(0, 300)),)


def test_a_short_shared_prefix_is_not_worth_a_part() -> None:
    plan = plan_of([lane(1, 100 + 9 * index, (0, 10)) for index in range(3)])
    assert not plan.more


def test_a_window_reads_no_more_than_it_shows() -> None:
    plan = plan_of([lane(1, 5000 + 50 * index, (0, 4000)) for index in range(4)], window=1001)
    assert [part.slots for part in plan.more] == [slice(3000, 4000)]


def test_siblings_share_what_their_windows_have_in_common() -> None:
    lanes = [lane(1, 5000 + 50 * index, (0, 4000), (5000 + 50 * index - 20, index + 1)) for index in range(4)]
    plan = plan_of(lanes, window=1001)
    seen_by_all = [part for part in plan.more if part.slots == slice(3004, 4000)]
    assert seen_by_all == [Part(slice(0, 4), slice(3004, 4000))]


PREFIX = 800


def tails(lengths: list[int], chunk: int = 1 << 20, new: tuple[int, ...] = (1,)) -> list[AttentionLane]:
    """Lanes behind one prefix, each with a tail of its own in chunks that don't lie side by side."""
    lanes, at = [], PREFIX
    for index, length in enumerate(lengths):
        runs = []
        for start in range(0, length, chunk):
            runs.append((at + 1, min(chunk, length - start)))
            at += 1 + runs[-1][1]
        count = new[index % len(new)]
        lanes.append(lane(count, at, (0, PREFIX), *runs))
        at += count
    return lanes


def parts(plan: WindowPlan) -> int:
    return len(plan.own) + len(plan.more)


def cells(plan: WindowPlan) -> int:
    """Products of a query and a key beside the shared prefix."""
    padded = sum(part.mask.numel() for part in plan.own if isinstance(part, PaddedPart))
    plain = [part for part in (*plan.own, *plan.more) if isinstance(part, Part)]
    return padded + sum((part.rows.stop - part.rows.start) * keys(part) for part in plain if not is_prefix(part))


def keys(part: Part) -> int:
    return part.slots.stop - part.slots.start if isinstance(part.slots, slice) else len(part.slots)


def is_prefix(part: Part) -> bool:
    return part.slots == slice(0, PREFIX) if isinstance(part.slots, slice) else False


COUNTS = [1, 2, 3, 5, 8, 13, 21, 34, 64]
LENGTHS = range(16, 1025, 16)


@pytest.mark.parametrize("chunk", [1 << 20, 104])
@pytest.mark.parametrize("count", COUNTS)
def test_parts_grow_with_the_tails(count: int, chunk: int) -> None:
    plans = [plan_of(tails([length] * count, chunk)) for length in LENGTHS]
    for shorter, longer in pairwise(map(parts, plans)):
        assert longer <= 2 * shorter


@pytest.mark.parametrize("length", [16, 176, 208, 352, 512, 528, 1024])
def test_one_more_tail_takes_at_most_one_more_part(length: int) -> None:
    plans = [plan_of(tails([length] * count)) for count in range(2, 65)]
    for fewer, more in pairwise(map(parts, plans)):
        assert more <= fewer + 1


@pytest.mark.parametrize("count", COUNTS)
def test_tails_of_one_length_are_not_padded(count: int) -> None:
    for length in LENGTHS:
        assert cells(plan_of(tails([length] * count))) == count * (length + 1)


@pytest.mark.parametrize("count", COUNTS)
def test_padding_costs_less_than_the_parts_it_saves(count: int) -> None:
    for longest in LENGTHS:
        lengths = np.linspace(16, longest, count).astype(int).tolist()
        plan = plan_of(tails(lengths))
        assert cells(plan) - sum(lengths) - count <= PART_COST * parts(plan)


def test_a_lane_with_many_new_tokens_does_not_widen_those_with_one() -> None:
    plan = plan_of(tails([100] * 64, new=(*[1] * 15, 8)))
    widths = {part.mask.shape[1] for part in plan.own if isinstance(part, PaddedPart)}
    assert widths == {1, 8}
    assert cells(plan) < 2 * (60 * 101 + 4 * 8 * 108)


def test_no_more_is_gathered_at_once_than_a_cache_holds() -> None:
    for length in LENGTHS:
        plan = plan_of(tails([length] * 64))
        assert all(len(part.slots) <= GATHERED for part in plan.own if isinstance(part, PaddedPart))
