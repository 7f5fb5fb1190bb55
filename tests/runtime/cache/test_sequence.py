"""A path of tokens and its slots."""

import numpy as np
import pytest

from promptlang.runtime.cache.eviction import make_policy
from promptlang.runtime.cache.integrity import check_tree
from promptlang.runtime.cache.kv_cache import KvCache
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.sequence import Sequence
from promptlang.runtime.cache.slots import SlotAllocator

GROWTH = 4


def make_cache(pool: int = 100) -> KvCache:
    tree = RadixTree(SlotAllocator(pool), make_policy("lru"))
    return KvCache(tree.allocator, tree)


def started(cache: KvCache, *tokens: int, namespace: tuple[str, ...] = ()) -> Sequence:
    sequence = Sequence(cache, list(tokens), namespace)
    sequence.attach()
    return sequence


def computed(cache: KvCache, *tokens: int, namespace: tuple[str, ...] = ()) -> Sequence:
    sequence = started(cache, *tokens, namespace=namespace)
    assert sequence.next_lane(len(tokens)) is not None
    sequence.commit()
    return sequence


def write(sequence: Sequence, count: int, growth: int = GROWTH) -> None:
    for token in range(count):
        sequence.tokens.append(token)
        assert sequence.next_lane(1, growth) is not None


def test_answers_that_are_written_side_by_side_lie_in_runs() -> None:
    cache = make_cache()
    one, other = computed(cache, 1, 2), computed(cache, 3, 4)
    for _ in range(2 * GROWTH):
        write(one, 1)
        write(other, 1)
    for sequence in (one, other):
        assert sum(length for _, length in sequence.context(sequence.end)) == sequence.end == 2 + 2 * GROWTH
        assert len(sequence.context(sequence.end)) <= 1 + 2


def test_where_room_is_short_an_answer_takes_no_slots_along() -> None:
    cache = make_cache(2 + 2 * GROWTH)
    sequence = computed(cache, 1, 2)
    write(sequence, 1)
    assert cache.allocator.available == 2 * GROWTH - 1


def test_an_answer_is_written_to_the_last_slot() -> None:
    cache = make_cache(30)
    sequence = computed(cache, 1, 2)
    write(sequence, 28)
    sequence.tokens.append(9)
    assert sequence.next_lane(1, GROWTH) is None
    sequence.release()
    check_tree(cache.tree, in_use=0)


@pytest.mark.parametrize("written", range(7))
@pytest.mark.parametrize("commits", [False, True])
def test_a_released_sequence_gives_back_each_slot_also_those_taken_along(written: int, commits: bool) -> None:
    cache = make_cache()
    sequence = computed(cache, 1, 2)
    write(sequence, written)
    if commits:
        sequence.commit()
    sequence.release()
    check_tree(cache.tree, in_use=0)
    assert (cache.tree.locked, cache.tree.size) == (0, 2 + written * commits)


def test_tokens_behind_a_cut_are_looked_up_as_they_are_now() -> None:
    cache = make_cache()
    sequence = computed(cache, 1, 2, 3)
    for token in (7, 8, 9):
        sequence.tokens.append(token)
        sequence.next_lane(1)
    sequence.expect(at=1).settle()
    sequence.truncate(4)
    write(sequence, 2)
    sequence.commit()
    expected = np.array([1, 2, 3, 7, 0, 1], np.int32)
    assert cache.tree.peek(expected) == 6
    sequence.release()
    check_tree(cache.tree, in_use=0)


@pytest.mark.parametrize(("mine", "others"), [((), ("",)), (("ab", "c"), ("a", "bc")), (("a",), ("a", ""))])
def test_sequences_of_different_namespaces_never_meet_and_those_of_one_share(
    mine: tuple[str, ...], others: tuple[str, ...]
) -> None:
    cache = make_cache()
    first = computed(cache, 1, 2, 3, namespace=mine)
    same, stranger = started(cache, 1, 2, 3, namespace=mine), started(cache, 1, 2, 3, namespace=others)
    assert (same.computed, stranger.computed) == (2, 0)
    branches = [first.branch([4, 5]), computed(cache, 1, 2, 3, namespace=others).branch([4, 5])]
    for branch in branches:
        branch.next_lane(2)
        branch.commit()
    assert started(cache, 1, 2, 3, 4, 5, namespace=mine).node is not branches[1].node
    assert cache.tree.size == 2 * 5
    assert same.next_key() != stranger.next_key()
    assert same.expect(1).node is not stranger.expect(1).node
