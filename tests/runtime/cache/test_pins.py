"""What is pinned stays, as far as the limit goes, whoever computed it and whenever."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptlang.runtime.cache.eviction import least_recently_used
from promptlang.runtime.cache.integrity import check_tree
from promptlang.runtime.cache.pins import Pin, Pins
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator

POOL = 40


def keys(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int32)


def make_tree() -> RadixTree:
    return RadixTree(SlotAllocator(POOL), least_recently_used)


def compute(tree: RadixTree, tokens: np.ndarray, namespace: tuple[str, ...] = ()) -> None:
    """A whole request, as far as there is room."""
    node, length = tree.match(tokens, namespace)
    tree.lock(node)
    missing = len(tokens) - length
    tree.evict(max(0, missing - tree.allocator.available))
    slots = tree.allocator.allocate(missing)
    if slots is not None:
        tree.insert(node, tokens[length:], slots)
    tree.unlock(node)


def kept(tree: RadixTree, tokens: np.ndarray, namespace: tuple[str, ...] = ()) -> int:
    """What is left of a prefix when all that may go has gone."""
    tree.evict(POOL)
    check_tree(tree, in_use=0)
    return tree.peek(tokens, namespace)


def test_what_is_computed_is_kept_at_once() -> None:
    tree = make_tree()
    compute(tree, keys(1, 2, 3, 4))
    pin = Pins(tree, POOL).add(keys(1, 2, 3))
    assert pin.is_whole
    assert kept(tree, keys(1, 2, 3, 4)) == 3


def test_what_is_computed_later_is_kept_from_then_on() -> None:
    tree = make_tree()
    pins = Pins(tree, POOL)
    pin = pins.add(keys(1, 2, 3, 4))
    for length in (2, 3, 4):
        compute(tree, keys(1, 2, 3, 4, 5)[:length])
        pins.update()
        assert pin.length == kept(tree, keys(1, 2, 3, 4)) == length
    assert pin.is_whole


def test_a_fork_computes_what_was_pinned_before_it() -> None:
    """The parent never asks the model: its prefix comes with the branches' prompts, in one edge that ends elsewhere."""
    tree = make_tree()
    pins = Pins(tree, POOL)
    pins.add(keys(1, 2, 3))
    compute(tree, keys(1, 2, 3, 7, 8))
    pins.update()
    assert kept(tree, keys(1, 2, 3, 7, 8)) == 3


def test_a_released_pin_keeps_nothing_and_is_released_once() -> None:
    tree = make_tree()
    pins = Pins(tree, POOL)
    compute(tree, keys(1, 2, 3))
    first, second = pins.add(keys(1, 2, 3)), pins.add(keys(1, 2, 9))
    pins.release(first)
    with pytest.raises(KeyError):
        pins.release(first)
    assert kept(tree, keys(1, 2, 3)) == 2
    pins.release(second)
    assert kept(tree, keys(1, 2, 3)) == 0
    compute(tree, keys(1, 2, 9))
    pins.update()
    assert (tree.pinned, tree.locked) == (0, 0)


def test_the_limit_cuts_what_is_kept_last() -> None:
    tree = make_tree()
    pins = Pins(tree, limit=5)
    compute(tree, keys(1, 2, 3))
    compute(tree, keys(4, 5, 6, 7))
    whole, cut = pins.add(keys(1, 2, 3)), pins.add(keys(4, 5, 6, 7))
    assert (whole.length, cut.length, tree.pinned) == (3, 2, 5)
    assert not cut.is_whole
    pins.release(whole)
    pins.update()
    assert cut.is_whole
    assert (tree.pinned, kept(tree, keys(4, 5, 6, 7))) == (4, 4)


def test_what_pins_share_counts_once_and_is_free_at_the_limit() -> None:
    tree = make_tree()
    pins = Pins(tree, limit=4)
    compute(tree, keys(1, 2, 3, 4))
    for _ in range(9):
        assert pins.add(keys(1, 2, 3, 4)).is_whole
    assert pins.add(keys(1, 2)).is_whole
    assert tree.pinned == 4


def test_what_running_requests_lock_does_not_count() -> None:
    tree = make_tree()
    compute(tree, keys(*range(30)))
    tree.lock(tree.find(keys(*range(30))))
    compute(tree, keys(50, 51, 52))
    assert Pins(tree, POOL // 2).add(keys(50, 51, 52)).is_whole


def test_each_namespaces_prefix_is_kept_by_its_own_pin() -> None:
    tree = make_tree()
    pins = Pins(tree, POOL)
    compute(tree, keys(1, 2, 3), ("a",))
    compute(tree, keys(1, 2, 3), ("b",))
    pins.add(keys(1, 2, 3), ("a",))
    assert kept(tree, keys(1, 2, 3), ("a",)) == 3
    assert kept(tree, keys(1, 2, 3), ("b",)) == 0


def test_looking_after_pins_that_wait_costs_no_walk(monkeypatch: pytest.MonkeyPatch) -> None:
    tree = make_tree()
    pins = Pins(tree, limit=3)
    compute(tree, keys(1, 2, 3, 4))
    pins.add(keys(1, 2, 3, 4))
    pins.add(keys(9, 9, 9))
    monkeypatch.delattr(RadixTree, "follow")
    for _ in range(9):
        pins.update()


PREFIXES = st.lists(st.integers(0, 1), min_size=1, max_size=8)


@given(
    st.lists(st.tuples(st.sampled_from(["compute", "pin", "release", "evict"]), PREFIXES), max_size=30),
    st.integers(0, 12),
)
def test_no_order_of_requests_pins_and_evictions_keeps_too_much_or_loses_what_is_kept(
    steps: list[tuple[str, list[int]]], limit: int
) -> None:
    tree = make_tree()
    pins, live = Pins(tree, limit), list[Pin]()
    for step, tokens in steps:
        before = {pin: pin.length for pin in live}
        if step == "compute":
            compute(tree, keys(*tokens))
            pins.update()
        elif step == "pin":
            live.append(pins.add(keys(*tokens)))
        elif step == "release" and live:
            gone = live.pop(len(tokens) % len(live))
            before.pop(gone)
            pins.release(gone)
        else:
            tree.evict(len(tokens))
        check_tree(tree, in_use=0)
        distinct = {tuple(pin.tokens[: end + 1]) for pin in live for end in range(pin.length)}
        assert tree.pinned == tree.locked == len(distinct) <= limit
        assert all(pin.length >= length for pin, length in before.items())
        if tree.pinned < limit:
            assert all(pin.length == tree.peek(pin.tokens) for pin in live if step in ("compute", "pin"))
    for pin in live:
        pins.release(pin)
    assert (tree.pinned, tree.locked) == (0, 0)
