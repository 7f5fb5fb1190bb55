"""What the radix tree promises, one promise a test; all of them at once are in `test_cache_stateful`."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptlang.runtime.cache.drawing import draw
from promptlang.runtime.cache.eviction import least_recently_used
from promptlang.runtime.cache.integrity import check_tree
from promptlang.runtime.cache.prefix_cache import Namespace
from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator


def keys(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int32)


def make_tree(size: int = 100) -> RadixTree:
    return RadixTree(SlotAllocator(size), least_recently_used)


def compute(tree: RadixTree, tokens: np.ndarray, namespace: Namespace = ()) -> RadixNode:
    """A whole request: match, lock, compute the rest, insert, unlock."""
    node, length = tree.match(tokens, namespace)
    tree.lock(node)
    slots = tree.allocator.allocate(len(tokens) - length)
    assert slots is not None
    end = tree.insert(node, tokens[length:], slots).node
    tree.unlock(node)
    check_tree(tree, in_use=0)
    return end


def slots_of(tree: RadixTree, node: RadixNode) -> list[int]:
    return np.concatenate([each.slots for each in tree.path(node)]).tolist()


# Matching ------------------------------------------------------------------------------------------------


def test_an_empty_tree_matches_nothing() -> None:
    tree = make_tree()
    assert tree.match(keys(1, 2)).length == 0
    assert tree.peek(keys(1, 2)) == 0
    assert tree.match(keys()).length == 0


@given(st.lists(st.lists(st.integers(0, 2), max_size=10), min_size=1, max_size=12))
def test_a_match_is_the_longest_common_prefix_with_anything_inserted(prompts: list[list[int]]) -> None:
    tree = make_tree(200)
    for index, prompt in enumerate(prompts):
        common = [_common(prompt, other) for other in prompts[:index]]
        assert tree.peek(keys(*prompt)) == max(common, default=0)
        node = compute(tree, keys(*prompt))
        assert tree.match(keys(*prompt)) == (node, len(prompt))
        assert tree.tokens_of(node).tolist() == prompt


def _common(one: list[int], other: list[int]) -> int:
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def test_a_limit_cuts_a_match_and_its_node_ends_there() -> None:
    tree = make_tree()
    whole = compute(tree, keys(1, 2, 3, 4))
    node, length = tree.match(keys(1, 2, 3, 4), limit=3)
    assert (length, tree.tokens_of(node).tolist()) == (3, [1, 2, 3])
    assert tree.tokens_of(whole).tolist() == [1, 2, 3, 4]


def test_peek_neither_splits_nor_counts_as_a_use() -> None:
    tree = make_tree()
    old = compute(tree, keys(1, 2, 3))
    compute(tree, keys(7, 8, 9))
    drawing = draw(tree, str)
    assert tree.peek(keys(1, 2, 5)) == 2
    assert draw(tree, str) == drawing
    tree.evict(3)
    assert old.is_evicted


def test_a_drawing_tells_what_is_shared_and_by_whom() -> None:
    tree = make_tree()
    for end in (7, 8):
        node = compute(tree, keys(1, 2, end))
        tree.hold(node)
        tree.lock(node)
    tree.unlock(node)
    assert draw(tree, lambda tokens: str(tokens.tolist())).split("\n") == [
        "prompts locked: 4 tokens",
        "=2 locked  [1, 2]",
        "-  1 held locked  [7]",
        "-  1 held  [8]",
    ]


@given(st.lists(st.integers(40, 400), min_size=2, max_size=6), st.integers(0, 4))
def test_prompts_that_a_polynomial_hash_confuses_are_different_prompts(prompt: list[int], at: int) -> None:
    """h = 31 h + token does not change when a token grows by one and the next one falls by 31."""
    at %= len(prompt) - 1
    twin = [*prompt[:at], prompt[at] + 1, prompt[at + 1] - 31, *prompt[at + 2 :]]
    tree = make_tree()
    compute(tree, keys(*prompt))
    assert tree.peek(keys(*twin)) == at
    assert tree.tokens_of(compute(tree, keys(*twin))).tolist() == twin
    assert tree.peek(keys(*prompt)) == len(prompt)


def test_finding_a_place_is_no_use_of_it() -> None:
    tree = make_tree()
    node = compute(tree, keys(1, 2, 3, 4))
    before = node.hits, node.last_use
    place = tree.find(keys(1, 2, 9))
    assert tree.tokens_of(place).tolist() == [1, 2]
    assert (node.hits, node.last_use) == before == (place.hits, place.last_use)
    assert tree.find(keys(9)).parent is None


def test_a_handle_keeps_its_meaning_and_its_slots_when_its_edge_is_split_above_it() -> None:
    tree = make_tree()
    end = compute(tree, keys(1, 2, 3, 4, 5))
    slots = slots_of(tree, end)
    tree.lock(end)
    for length in (4, 2, 3, 1):
        tree.match(keys(1, 2, 3, 4, 5), limit=length)
        check_tree(tree, in_use=0)
    assert tree.tokens_of(end).tolist() == [1, 2, 3, 4, 5]
    assert slots_of(tree, end) == slots
    assert tree.locked == 5
    tree.unlock(end)
    assert (tree.locked, tree.evictable) == (0, 5)


@pytest.mark.parametrize("length", [0, 1, 15, 16, 17, 31, 32, 33])
def test_the_answer_is_cached_behind_the_prompt(length: int) -> None:
    tree = make_tree()
    prompt, answer, question = np.arange(40, dtype=np.int32), np.arange(100, 108, dtype=np.int32), keys(50, 51)
    end = compute(tree, prompt[:length])
    tree.lock(end)
    slots = tree.allocator.allocate(len(answer))
    assert slots is not None
    tree.insert(end, answer, slots)
    tree.unlock(end)
    assert tree.match(np.concatenate([prompt[:length], answer, question])).length == length + len(answer)


# Namespaces ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mine", "others"),
    [
        (("ab", "c"), ("a", "bc")),
        (("ab",), ("a", "b")),
        (("a,b",), ("a", "b")),
        ((), ("",)),
        (("",), ("", "")),
    ],
)
def test_crafted_names_never_meet_and_the_same_name_does(mine: Namespace, others: Namespace) -> None:
    tree = make_tree()
    compute(tree, keys(1, 2, 3), mine)
    assert tree.match(keys(1, 2, 3), others).length == 0
    assert tree.peek(keys(1, 2, 3), others) == 0
    assert tree.match(keys(1, 2, 3), mine).length == 3


# Duplicates and cancellation -----------------------------------------------------------------------------


def test_of_two_requests_that_compute_the_same_the_tree_keeps_the_first_slots_and_frees_the_others() -> None:
    tree = make_tree()
    root = tree.match(keys()).node
    mine, yours = tree.allocator.allocate(4), tree.allocator.allocate(5)
    assert mine is not None
    assert yours is not None
    for _ in range(2):
        tree.lock(root)
    first = tree.insert(root, keys(1, 2, 3, 4), mine)
    second = tree.insert(root, keys(1, 2, 9, 9, 9), yours)
    assert first.duplicates.tolist() == []
    assert second.duplicates.tolist() == yours[:2].tolist()
    assert set(yours[:2].tolist()) <= set(tree.allocator.free_slots().tolist())
    assert slots_of(tree, second.node) == [*mine[:2].tolist(), *yours[2:].tolist()]
    assert slots_of(tree, first.node) == mine.tolist()
    check_tree(tree, in_use=0)


def test_what_ends_inside_a_known_edge_is_a_duplicate_whole() -> None:
    tree = make_tree()
    compute(tree, keys(1, 2, 3, 4))
    root = tree.match(keys()).node
    slots = tree.allocator.allocate(2)
    assert slots is not None
    inserted = tree.insert(root, keys(1, 2), slots)
    assert inserted.duplicates.tolist() == slots.tolist()
    assert tree.tokens_of(inserted.node).tolist() == [1, 2]
    check_tree(tree, in_use=0)


def test_the_tree_keeps_its_own_copy_of_what_it_is_given() -> None:
    tree = make_tree()
    tokens, slots = keys(1, 2, 3), tree.allocator.allocate(3)
    assert slots is not None
    tree.insert(tree.match(keys()).node, tokens, slots)
    tokens[:], slots[:] = 9, 99
    assert tree.peek(keys(1, 2, 3)) == 3
    check_tree(tree, in_use=0)


@pytest.mark.parametrize("chunks", range(5))
def test_a_prefill_cancelled_after_any_chunk_leaves_a_whole_prefix_and_no_slot(chunks: int) -> None:
    tree = make_tree()
    prompt = np.arange(16, dtype=np.int32)
    node = tree.match(prompt).node
    tree.lock(node)
    for chunk in range(chunks):
        slots = tree.allocator.allocate(4)
        assert slots is not None
        end = tree.insert(node, prompt[chunk * 4 : chunk * 4 + 4], slots).node
        tree.lock(end)
        tree.unlock(node)
        node = end
    running = tree.allocator.allocate(3)
    assert running is not None
    tree.allocator.free(running)
    tree.unlock(node)
    check_tree(tree, in_use=0)
    assert (tree.locked, tree.match(prompt).length) == (0, chunks * 4)


def test_tokens_and_slots_of_different_number_are_refused() -> None:
    tree = make_tree()
    with pytest.raises(ValueError, match="3 tokens with 2 slots"):
        tree.insert(tree.match(keys()).node, keys(1, 2, 3), keys(0, 1))


# Protection ----------------------------------------------------------------------------------------------


def test_a_locked_path_survives_any_eviction_the_matched_node_included() -> None:
    tree = make_tree()
    compute(tree, keys(1, 2, 3, 4))
    compute(tree, keys(1, 2, 8, 9))
    match = tree.match(keys(1, 2, 3))
    tree.lock(match.node)
    assert tree.evict(100) == 3
    assert tree.peek(keys(1, 2, 3, 4)) == 3
    check_tree(tree, in_use=0)
    tree.unlock(match.node)
    assert tree.evict(100) == 3


def test_a_path_locked_twice_is_free_only_after_both_locks_went() -> None:
    tree = make_tree()
    node = compute(tree, keys(1, 2))
    tree.lock(node)
    tree.lock(node)
    tree.unlock(node)
    assert tree.evict(2) == 0
    tree.unlock(node)
    assert tree.evict(2) == 2


def test_a_match_locked_too_late_is_refused() -> None:
    tree = make_tree()
    compute(tree, keys(1, 2, 3))
    match = tree.match(keys(1, 2, 3))
    tree.evict(3)
    with pytest.raises(ValueError, match="evicted"):
        tree.lock(match.node)
    with pytest.raises(ValueError, match="evicted"):
        tree.insert(match.node, keys(4), keys(0))
    check_tree(tree, in_use=0)


@pytest.mark.parametrize("excess", [RadixTree.unlock, RadixTree.drop, lambda tree, node: tree.settle(node, 1)])
def test_what_was_not_taken_cant_be_given_back(excess: Callable[[RadixTree, RadixNode], None]) -> None:
    tree = make_tree()
    node = compute(tree, keys(1, 2))
    tree.lock(node)
    tree.unlock(node)
    tree.hold(node)
    tree.drop(node)
    tree.expect(node, 1)
    tree.settle(node, 1)
    with pytest.raises(ValueError, match=r"not locked|no prompt holds|expected"):
        excess(tree, node)
    check_tree(tree, in_use=0)


def test_what_a_live_prompt_holds_goes_after_all_else() -> None:
    tree = make_tree()
    held = compute(tree, keys(1, 2, 3))
    tree.hold(held)
    other = compute(tree, keys(4, 5, 6))
    tree.evict(3)
    assert other.is_evicted
    assert not held.is_evicted


def test_a_hold_outlives_its_node_and_passes_to_what_is_left_of_the_path() -> None:
    tree = make_tree()
    compute(tree, keys(1, 2))
    held = compute(tree, keys(1, 2, 3, 4))
    tree.hold(held)
    assert tree.evict(2) == 2
    assert held.is_evicted
    compute(tree, keys(7, 8))
    tree.evict(2)
    assert tree.peek(keys(1, 2)) == 2
    tree.hold(held)
    tree.drop(held)
    tree.drop(held)
    compute(tree, keys(7, 8))
    tree.evict(2)
    assert tree.peek(keys(1, 2)) == 0
    check_tree(tree, in_use=0)


# Eviction ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 9])
def test_eviction_frees_what_was_asked_for_and_no_more(count: int) -> None:
    tree = make_tree()
    compute(tree, keys(1, 2, 3))
    compute(tree, keys(4, 5, 6))
    free = tree.allocator.available
    assert tree.evict(count) == min(count, 6)
    assert tree.allocator.available == free + min(count, 6)
    check_tree(tree, in_use=0)


def test_a_long_leaf_is_cut_from_its_end() -> None:
    tree = make_tree()
    node = compute(tree, keys(1, 2, 3, 4, 5))
    slots = slots_of(tree, node)
    tree.evict(2)
    assert tree.match(keys(1, 2, 3, 4, 5)).length == 3
    assert slots_of(tree, node) == slots[:3]
    compute(tree, keys(1, 2, 3, 4, 5))
    assert tree.peek(keys(1, 2, 3, 4, 5)) == 5


def test_freed_slots_given_to_another_prompt_are_never_found_under_the_old_one() -> None:
    tree = make_tree(6)
    compute(tree, keys(1, 2, 3, 4, 5, 6))
    tree.evict(4)
    compute(tree, keys(7, 7, 7, 7))
    assert tree.match(keys(1, 2, 3, 4, 5, 6)).length == 2
    assert tree.match(keys(7, 7, 7, 7)).length == 4


def test_roots_are_never_evicted_and_clear_forgets_all_but_them() -> None:
    tree = make_tree()
    root = tree.match(keys(), ("a",)).node
    compute(tree, keys(1, 2), ("a",))
    compute(tree, keys(3, 4), ("b",))
    tree.clear()
    assert (tree.size, tree.allocator.available) == (0, 100)
    assert tree.match(keys(1, 2), ("a",)) == (root, 0)
    assert not root.is_evicted


def test_clear_refuses_while_something_is_locked() -> None:
    tree = make_tree()
    tree.lock(compute(tree, keys(1, 2)))
    with pytest.raises(ValueError, match="2 cached tokens are locked"):
        tree.clear()


def test_many_locks_leave_no_trace_in_the_eviction_queue() -> None:
    tree = make_tree()
    node = compute(tree, keys(1, 2))
    for _ in range(2000):
        tree.lock(node)
        tree.unlock(node)
    assert len(tree._queue) < 100
    check_tree(tree, in_use=0)


# Depth and speed -----------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_chain_of_five_thousand_nodes_is_inserted_matched_drawn_checked_and_evicted() -> None:
    length = 5000
    tree = make_tree(length)
    tokens = np.arange(length, dtype=np.int32)
    node = tree.match(keys()).node
    for at in range(length):
        slots = tree.allocator.allocate(1)
        assert slots is not None
        node = tree.insert(node, tokens[at : at + 1], slots).node
    assert len(tree.path(node)) == length + 1
    tree.lock(node)
    tree.unlock(node)
    assert tree.match(tokens).length == length
    assert tree.tokens_of(node).tolist() == tokens.tolist()
    assert draw(tree, str).count("\n") == length
    check_tree(tree, in_use=0)
    assert tree.evict(length) == length
    check_tree(tree, in_use=0)


def test_the_drawing_shows_each_namespace_and_edge() -> None:
    tree = make_tree()
    compute(tree, keys(1, 2, 3), ("tenant",))
    compute(tree, keys(1, 2, *range(10, 30)), ("tenant",))
    name, shared, one, other = draw(tree, str, width=24).splitlines()
    assert name == "prompts ('tenant',): 23 tokens"
    assert shared == " 2  [1 2]"
    assert one == "-  1  [3]"
    assert other == "-  20  [10 11 12 13 14 15"[:24].rstrip()
    assert len(other) <= 24


def test_check_notices_broken_books() -> None:
    tree = make_tree()
    compute(tree, keys(1, 2, 3))
    with pytest.raises(AssertionError, match="1 in use are not 100"):
        check_tree(tree, in_use=1)
    tree.allocator.free(keys(2))
    with pytest.raises(AssertionError):
        check_tree(tree, in_use=-1)
