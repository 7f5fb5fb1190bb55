"""The tree and its baselines behind one interface: each gives its slots back, and shares only what is equal."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptlang.runtime.cache.eviction import least_recently_used
from promptlang.runtime.cache.prefix_cache import PrefixCache
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator
from promptlang.runtime.simulation.block_cache import BlockCache
from promptlang.runtime.simulation.no_cache import NoCache
from promptlang.runtime.simulation.simulator import Call, replay

SIZE = 40

CACHES: dict[str, Callable[[], PrefixCache[Any]]] = {
    "tree": lambda: RadixTree(SlotAllocator(SIZE), least_recently_used),
    "blocks": lambda: BlockCache(SlotAllocator(SIZE), block=4),
    "none": lambda: NoCache(SlotAllocator(SIZE)),
}

prompts = st.lists(st.lists(st.integers(0, 1), min_size=1, max_size=20), min_size=1, max_size=15)


def keys(*tokens: int) -> np.ndarray:
    return np.array(tokens, np.int32)


def compute(cache: PrefixCache[Any], tokens: np.ndarray, namespace: tuple[str, ...] = ()) -> Any:
    """A whole request; returns the node it ends at, locked."""
    node, length = cache.match(tokens, namespace)
    cache.lock(node)
    count = len(tokens) - length
    if count > cache.allocator.available:
        cache.evict(count - cache.allocator.available)
    slots = cache.allocator.allocate(count)
    assert slots is not None
    end = cache.insert(node, tokens[length:], slots).node
    cache.lock(end)
    cache.unlock(node)
    return end


@pytest.mark.parametrize("name", CACHES)
@given(prompts=prompts)
def test_every_slot_is_free_cached_or_locked_and_comes_back(name: str, prompts: list[list[int]]) -> None:
    cache = CACHES[name]()
    for prompt in prompts:
        end = compute(cache, keys(*prompt))
        assert cache.allocator.available + cache.evictable + cache.locked == SIZE
        cache.unlock(end)
        assert cache.locked == 0
    cache.evict(SIZE)
    assert cache.allocator.available == SIZE


@pytest.mark.parametrize("name", CACHES)
@given(prompts=prompts)
def test_what_is_found_was_there_and_stays_while_locked(name: str, prompts: list[list[int]]) -> None:
    cache = CACHES[name]()
    for index, prompt in enumerate(prompts):
        found = cache.match(keys(*prompt)).length
        assert any(earlier[:found] == prompt[:found] for earlier in prompts[:index]) or not found
        end = compute(cache, keys(*prompt))
        kept = cache.peek(keys(*prompt))
        cache.evict(SIZE)
        assert cache.peek(keys(*prompt)) == kept
        cache.unlock(end)


@pytest.mark.parametrize(("name", "expected"), [("tree", 11), ("blocks", 8), ("none", 0)])
def test_of_a_prefix_of_eleven_tokens_the_tree_shares_all_and_blocks_of_four_share_eight(
    name: str, expected: int
) -> None:
    cache = CACHES[name]()
    cache.unlock(compute(cache, np.arange(11, dtype=np.int32)))
    assert cache.peek(np.arange(15, dtype=np.int32)) == expected
    assert cache.match(np.arange(15, dtype=np.int32)).length == expected
    assert cache.match(np.arange(15, dtype=np.int32), limit=7).length <= 7


@pytest.mark.parametrize("name", CACHES)
def test_namespaces_never_meet(name: str) -> None:
    cache = CACHES[name]()
    compute(cache, keys(*range(8)), ("ab", "c"))
    assert cache.peek(keys(*range(8)), ("a", "bc")) == 0
    assert cache.peek(keys(*range(8))) == 0


def test_an_equal_block_behind_another_prefix_is_another_block() -> None:
    cache = BlockCache(SlotAllocator(SIZE), block=2)
    compute(cache, keys(1, 1, 2, 2))
    assert cache.peek(keys(3, 3, 2, 2)) == 0
    assert cache.peek(keys(2, 2)) == 0


def test_two_requests_that_compute_the_same_blocks_keep_the_first() -> None:
    cache = BlockCache(SlotAllocator(SIZE), block=2)
    start = cache.match(keys()).node
    mine, yours = cache.allocator.allocate(4), cache.allocator.allocate(5)
    assert mine is not None
    assert yours is not None
    first = cache.insert(start, keys(1, 2, 3, 4), mine)
    second = cache.insert(start, keys(1, 2, 9, 9, 5), yours)
    assert first.duplicates.tolist() == []
    assert sorted(second.duplicates.tolist()) == [yours[0], yours[1], yours[4]]


def test_with_blocks_of_one_token_the_flat_cache_and_the_tree_evict_alike() -> None:
    random = np.random.default_rng(0)
    calls = [Call(random.integers(0, 2, 6, dtype=np.int32)) for _ in range(300)]
    tree = RadixTree(SlotAllocator(30), least_recently_used)
    assert replay(BlockCache(SlotAllocator(30), block=1), calls) == replay(tree, calls)
