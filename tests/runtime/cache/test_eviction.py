"""Each policy's order on cases small enough to read; `test_cache_stateful` holds them against a brute-force oracle."""

from collections.abc import Callable

import numpy as np
import pytest

from promptlang.runtime.cache.eviction import POLICIES, make_policy
from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator


def keys(name: str) -> np.ndarray:
    return np.array([ord(letter) for letter in name], np.int32)


class Library:
    """A tree whose prompts are words, a token a letter."""

    def __init__(self, policy: str) -> None:
        self.tree = RadixTree(SlotAllocator(1000), make_policy(policy))

    def add(self, *words: str) -> list[RadixNode]:
        return [self._add(word) for word in words]

    def _add(self, word: str) -> RadixNode:
        match = self.tree.match(keys(word))
        slots = self.tree.allocator.allocate(len(word) - match.length)
        assert slots is not None
        return self.tree.insert(match.node, keys(word)[match.length :], slots).node

    def use(self, *words: str) -> None:
        for word in words:
            self.tree.match(keys(word))

    def cached(self, *words: str) -> list[str]:
        return [word[: self.tree.peek(keys(word))] for word in words]

    def evicted_in_order(self, *words: str) -> list[str]:
        """Evict letter by letter; the words in the order in which they began to go."""
        order: list[str] = []
        while self.tree.evict(1):
            for word in words:
                if self.tree.peek(keys(word)) < len(word) and word not in order:
                    order.append(word)
        return order


def test_lru_takes_the_longest_unused() -> None:
    library = Library("lru")
    library.add("one", "two", "six")
    library.use("one", "six")
    assert library.evicted_in_order("one", "two", "six") == ["two", "one", "six"]


def test_lfu_takes_the_least_used_and_of_equals_the_longest_unused() -> None:
    library = Library("lfu")
    library.add("one", "two", "six")
    library.use("one", "one", "six", "two")
    assert library.evicted_in_order("one", "two", "six") == ["six", "two", "one"]


def test_fifo_takes_the_oldest_however_often_used() -> None:
    library = Library("fifo")
    library.add("one", "two", "six")
    library.use("one", "one", "two")
    assert library.evicted_in_order("one", "two", "six") == ["one", "two", "six"]


@pytest.mark.parametrize("policy", POLICIES)
def test_a_leaf_goes_before_what_it_stands_on(policy: str) -> None:
    library = Library(policy)
    library.add("head", "headline", "headlamp")
    library.use("headline", "headlamp")
    assert library.evicted_in_order("head", "headl", "headline", "headlamp")[-1] == "head"


def test_a_partial_match_renews_only_the_part_it_used() -> None:
    library = Library("lru")
    library.add("abcdef", "xyz")
    library.use("abc")
    library.tree.evict(3)
    assert library.cached("abcdef", "xyz") == ["abc", "xyz"]
    library.tree.evict(3)
    assert library.cached("abcdef", "xyz") == ["abc", ""]


def test_a_split_keeps_how_often_and_since_when_both_parts_were_used() -> None:
    frequent = Library("lfu")
    frequent.add("abcdef", "xyz")
    frequent.use("abcdef", "abcdef", "xyz", "abc")
    frequent.tree.evict(3)
    assert frequent.cached("abcdef", "xyz") == ["abcdef", ""]
    first_in = Library("fifo")
    first_in.add("abcdef", "xyz")
    first_in.use("abc")
    first_in.add("abcxxx")
    assert first_in.evicted_in_order("abcdef", "xyz", "abcxxx") == ["abcdef", "xyz", "abcxxx"]


@pytest.mark.parametrize("policy", POLICIES)
def test_what_a_live_prompt_holds_goes_last_under_every_policy(policy: str) -> None:
    library = Library(policy)
    held, *_ = library.add("one", "two", "six")
    library.tree.hold(held)
    library.use("two", "two", "six")
    assert library.evicted_in_order("one", "two", "six")[-1] == "one"


def test_what_nothing_can_reach_goes_first_then_the_unknown_then_what_is_still_needed() -> None:
    library = Library("program")
    soon, late, spent, pruned, *_ = library.add("soon", "late", "done", "prun", "old", "new")
    library.tree.expect(soon, 10)
    library.tree.expect(late, 20)
    library.tree.expect(spent, 5)
    library.tree.hold(pruned)
    library.tree.settle(spent, 5)
    library.tree.drop(pruned)
    words = ["soon", "late", "done", "prun", "old", "new"]
    assert library.evicted_in_order(*words) == ["done", "prun", "old", "new", "late", "soon"]


def test_of_several_readers_the_next_one_counts_until_it_has_come() -> None:
    library = Library("program")
    first, second = library.add("first", "second")
    for at in (30, 3):
        library.tree.expect(first, at)
    library.tree.expect(second, 20)
    library.tree.settle(first, 3)
    assert library.evicted_in_order("first", "second") == ["first", "second"]


def test_a_prefix_that_is_found_again_is_no_longer_given_up() -> None:
    library = Library("program")
    given_up, _ = library.add("back", "other")
    library.tree.hold(given_up)
    library.tree.drop(given_up)
    library.use("back")
    assert library.evicted_in_order("back", "other") == ["other", "back"]


def test_an_expected_use_passes_to_what_is_left_when_its_node_goes() -> None:
    library = Library("program")
    library.add("head")
    (item,) = library.add("headitem")
    library.tree.expect(item, 1)
    library.tree.evict(4)
    library.add("fresh")
    library.tree.evict(5)
    assert library.cached("head", "fresh") == ["head", ""]
    library.tree.settle(item, 1)
    library.add("fresh")
    library.tree.evict(4)
    assert library.cached("head", "fresh") == ["", "fresh"]


def test_a_split_leaves_the_expectation_where_the_reader_will_end() -> None:
    library = Library("program")
    (plan,) = library.add("planplan")
    library.tree.expect(plan, 7)
    library.add("planother", "newest")
    assert library.evicted_in_order("planplan", "planother", "newest") == ["planother", "newest", "planplan"]


@pytest.mark.parametrize("change", ["hold", "expect", "use"])
def test_a_key_that_rose_since_it_was_queued_counts_as_it_is_now(change: str) -> None:
    library = Library("program")
    first, _ = library.add("one", "two")
    changes: dict[str, Callable[[], None]] = {
        "hold": lambda: library.tree.hold(first),
        "expect": lambda: library.tree.expect(first, 1),
        "use": lambda: library.use("one"),
    }
    changes[change]()
    assert library.evicted_in_order("one", "two") == ["two", "one"]


def test_an_unknown_policy_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ValueError, match=r"'random'.*lru, lfu, fifo, program"):
        make_policy("random")
