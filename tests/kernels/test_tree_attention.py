"""Tree attention gives what attention of each sequence alone gives."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.reference import ReferenceAttention
from promptlang.kernels.tree_attention import TreeAttention

CPU = torch.device("cpu")
TREE, REFERENCE = TreeAttention(CPU), ReferenceAttention(CPU)

SIZE = 16
LENGTHS = st.sampled_from([1, 2, 3, 15, 16, 17, 63, 64, 65, 191, 192, 193, 400, 511, 512, 513])


class SlotSource:
    """Hands out slots, side by side or with a hole before them."""

    def __init__(self) -> None:
        self.used = 0

    def take(self, count: int, hole: int = 0) -> tuple[int, int]:
        start = self.used + hole
        self.used = start + count
        return start, count


@st.composite
def trees(draw: st.DrawFn) -> tuple[list[AttentionLane], int]:
    """Lanes that are paths in a random tree of runs, sorted by context, and how many slots they use."""
    source = SlotSource()
    paths: list[tuple[tuple[int, int], ...]] = [()]
    for _ in range(draw(st.integers(0, 8))):
        parent = draw(st.sampled_from(paths))
        paths.append((*parent, source.take(draw(LENGTHS), draw(st.integers(0, 1)))))
    lanes = []
    for path in draw(st.lists(st.sampled_from(paths), min_size=1, max_size=12)):
        start, count = source.take(draw(st.sampled_from([1, 1, 1, 2, 5, 8, 9, 20])), draw(st.integers(0, 1)))
        lanes.append(AttentionLane(np.arange(start, start + count, dtype=np.int32), path))
    return sorted(lanes, key=lambda lane: lane.context), source.used


def difference(
    lanes: list[AttentionLane],
    slots: int,
    groups: int,
    dtype: torch.dtype = torch.float32,
    window: int | None = None,
    **scoring: Any,
) -> float:
    """Largest difference to the reference, which computes in float64."""
    generator = torch.Generator().manual_seed(slots)
    rows = sum(len(lane.slots) for lane in lanes)
    query = torch.randn(2 * groups, rows, SIZE, generator=generator)
    keys, values = torch.randn(2, 2, slots, SIZE, generator=generator)
    plan, plain = TREE.plan(lanes, {window}), REFERENCE.plan(lanes, {window})
    scoring |= {"window": window}
    ours = TREE.attend(plan, query.to(dtype), keys.to(dtype), values.to(dtype), 0.25, **scoring)
    theirs = REFERENCE.attend(plain, query.double(), keys.double(), values.double(), 0.25, **scoring)
    assert ours.shape == theirs.shape
    assert ours.dtype == dtype
    return float((ours - theirs).abs().max())


def lane(new: int, at: int, *context: tuple[int, int]) -> AttentionLane:
    return AttentionLane(np.arange(at, at + new, dtype=np.int32), context)


@settings(max_examples=settings.default.max_examples * 3 // 2, deadline=None)
@given(trees(), st.integers(1, 4))
def test_equals_each_sequence_alone(tree: tuple[list[AttentionLane], int], groups: int) -> None:
    assert difference(*tree, groups) < 1e-5


@settings(max_examples=25, deadline=None)
@given(trees(), st.integers(1, 4))
def test_the_route_for_other_devices_gives_the_same(tree: tuple[list[AttentionLane], int], groups: int) -> None:
    assert difference(*tree, groups, torch.float64) < 1e-5


@settings(max_examples=settings.default.max_examples * 3 // 2, deadline=None)
@given(trees(), st.integers(1, 3), st.sampled_from([1, 2, 7, 16, 64, 100, 192, 300, 900]))
def test_a_window_hides_what_is_too_far_back(tree: tuple[list[AttentionLane], int], groups: int, window: int) -> None:
    assert difference(*tree, groups, window=window) < 1e-5


@settings(max_examples=25, deadline=None)
@given(trees(), st.integers(1, 3), st.sampled_from([7, 100, 300]))
def test_windows_on_the_route_for_other_devices(
    tree: tuple[list[AttentionLane], int], groups: int, window: int
) -> None:
    assert difference(*tree, groups, torch.float64, window=window) < 1e-5


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(trees(), st.integers(1, 3), st.sampled_from([None, 2.0]), st.booleans(), st.sampled_from([None, 50]))
def test_caps_and_sinks(
    tree: tuple[list[AttentionLane], int], groups: int, cap: float | None, has_sinks: bool, window: int | None
) -> None:
    sinks = torch.linspace(-3, 3, 2 * groups) if has_sinks else None
    assert difference(*tree, groups, window=window, cap=cap, sinks=sinks) < 1e-5


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_windows_in_half_precision_are_near(dtype: torch.dtype) -> None:
    lanes = [lane(1 + index, 600 + index * 20, (0, 500), (700 + index * 50, 7 * index + 1)) for index in range(5)]
    assert difference(lanes, 1000, 3, dtype, window=30) < 0.02


@pytest.mark.parametrize("groups", [1, 2, 3, 4])
def test_a_first_token_without_context(groups: int) -> None:
    assert difference([lane(1, 0)], 1, groups) < 1e-6


def test_many_siblings_behind_one_prefix() -> None:
    lanes = [lane(1, 600 + index * 20, (0, 500), (600 + index * 20 - 7, 7)) for index in range(64)]
    assert difference(lanes, 2000, 3) < 1e-5


def test_a_deep_chain_with_a_reader_at_every_node() -> None:
    nodes = [(index * 3, 3) for index in range(60)]
    lanes = [lane(1, 200 + index, *nodes[:index]) for index in range(60)]
    assert difference(lanes, 300, 3) < 1e-5


def test_a_context_in_thousands_of_pieces() -> None:
    pieces = [(slot, 1) for slot in range(0, 4000, 2)]
    assert difference([lane(1, 4001, *pieces), lane(3, 4002, *pieces)], 4010, 3) < 1e-5


def test_large_scores_do_not_overflow() -> None:
    lanes = [lane(1, 500 + index, (0, 400)) for index in range(4)]
    keys = torch.randn(1, 600, SIZE) * 100
    query = torch.randn(1, 4, SIZE) * 100
    values = torch.randn(1, 600, SIZE)
    ours = TREE.attend(TREE.plan(lanes, {None}), query, keys, values, 1.0)
    theirs = REFERENCE.attend(REFERENCE.plan(lanes, {None}), query, keys, values, 1.0)
    assert torch.allclose(ours, theirs, atol=1e-4)


def test_the_same_plan_gives_the_same_bits() -> None:
    lanes = [lane(1, 1000 + 50 * index, (0, 800)) for index in range(16)]
    query, keys, values = torch.randn(6, 16, SIZE), torch.randn(2, 2000, SIZE), torch.randn(2, 2000, SIZE)
    plan = TREE.plan(lanes, {None})
    first, second = (TREE.attend(plan, query, keys, values, 0.25) for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("backend", [TREE, REFERENCE])
def test_new_keys_and_values_go_to_their_slots_and_nowhere_else(backend: Any) -> None:
    lanes = [lane(3, 7, (0, 4)), lane(1, 20, (0, 4))]
    keys, values = torch.zeros(2, 2, 30, SIZE)
    new_keys, new_values = torch.randn(2, 2, 4, SIZE)
    backend.store(backend.plan(lanes, {None}), new_keys, new_values, keys, values)
    slots = [7, 8, 9, 20]
    assert torch.equal(keys[:, slots], new_keys)
    assert torch.equal(values[:, slots], new_values)
    others = [slot for slot in range(30) if slot not in slots]
    assert not keys[:, others].any()
    assert not values[:, others].any()
