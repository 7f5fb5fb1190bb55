"""Slots are given out once, in runs where possible, and taken back once."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptlang.runtime.cache.slots import SlotAllocator, SlotRun, runs


def slots(*numbers: int) -> np.ndarray:
    return np.array(numbers, np.int32)


def taken(allocator: SlotAllocator, count: int) -> np.ndarray:
    got = allocator.allocate(count)
    assert got is not None
    return got


@given(st.lists(st.integers(0, 12), unique=True))
def test_runs_are_contiguous_maximal_and_in_order(numbers: list[int]) -> None:
    cut = runs(slots(*numbers))
    assert [slot for run in cut for slot in range(run.start, run.start + run.length)] == numbers
    assert all(before.start + before.length != after.start for before, after in pairwise(cut))


def test_an_allocation_is_one_run_where_one_is_free() -> None:
    allocator = SlotAllocator(100)
    assert runs(taken(allocator, 40)) == (SlotRun(0, 40),)
    assert runs(taken(allocator, 60)) == (SlotRun(40, 60),)
    assert allocator.available == 0


def test_the_smallest_run_that_fits_is_taken() -> None:
    allocator = SlotAllocator(30)
    taken(allocator, 30)
    allocator.free(np.arange(0, 9, dtype=np.int32))
    allocator.free(np.arange(20, 25, dtype=np.int32))
    assert runs(taken(allocator, 4)) == (SlotRun(20, 4),)


def test_several_runs_are_taken_largest_first_where_none_fits() -> None:
    allocator = SlotAllocator(30)
    taken(allocator, 30)
    allocator.free(slots(3, 4, 10, 11, 12, 13, 20))
    assert runs(taken(allocator, 6)) == (SlotRun(10, 4), SlotRun(3, 2))


def test_an_allocation_beyond_what_is_free_takes_nothing() -> None:
    allocator = SlotAllocator(10)
    taken(allocator, 4)
    assert allocator.allocate(7) is None
    assert allocator.available == 6


def test_a_tail_grows_in_place_as_long_as_its_neighbours_are_free() -> None:
    allocator = SlotAllocator(10)
    tail = taken(allocator, 4)
    assert allocator.extend(int(tail[-1]), 3)
    assert not allocator.extend(6, 4)
    assert allocator.extend(6, 3)
    assert not allocator.extend(9, 1)
    assert allocator.available == 0


@pytest.mark.parametrize(
    "wrong",
    [slots(7), slots(5, 6, 7), slots(2, 2), slots(3, 10), slots(-1), slots(0, 1, 9), slots(4, 3, 4)],
    ids=["free", "partly free", "twice", "too large", "negative", "far apart, one free", "twice, unsorted"],
)
def test_a_wrong_free_is_refused_whole(wrong: np.ndarray) -> None:
    allocator = SlotAllocator(10)
    taken(allocator, 7)
    with pytest.raises(ValueError, match="slots"):
        allocator.free(wrong)
    assert allocator.available == 3
    assert allocator.free_slots().tolist() == [7, 8, 9]


def test_a_slot_freed_on_two_paths_is_refused_the_second_time() -> None:
    allocator = SlotAllocator(10)
    mine = taken(allocator, 5)
    allocator.free(mine)
    with pytest.raises(ValueError, match="free already"):
        allocator.free(mine)


def test_a_negative_allocation_and_an_empty_pool_are_refused() -> None:
    with pytest.raises(ValueError, match="can't allocate"):
        SlotAllocator(3).allocate(-1)
    with pytest.raises(ValueError, match="at least one slot"):
        SlotAllocator(0)


@given(st.data())
def test_the_allocator_agrees_with_a_set_of_free_slots(data: st.DataObject) -> None:
    size = 24
    allocator, free = SlotAllocator(size), set(range(size))
    for _ in range(data.draw(st.integers(1, 20))):
        owned = sorted(set(range(size)) - free)
        action = data.draw(st.sampled_from(["allocate", "extend", "free"]))
        if action == "allocate":
            count = data.draw(st.integers(0, 10))
            got = allocator.allocate(count)
            assert (got is None) == (count > len(free))
            if got is not None:
                assert len(got) == count
                assert set(got.tolist()) <= free
                free -= set(got.tolist())
        elif action == "extend" and owned:
            after, count = data.draw(st.sampled_from(owned)), data.draw(st.integers(0, 4))
            wanted = set(range(after + 1, after + 1 + count))
            assert allocator.extend(after, count) == (wanted <= free)
            free -= wanted if wanted <= free else set()
        elif owned:
            given_back = data.draw(st.lists(st.sampled_from(owned), unique=True))
            allocator.free(slots(*given_back))
            free |= set(given_back)
        assert allocator.free_slots().tolist() == sorted(free)
        assert allocator.available == len(free)
