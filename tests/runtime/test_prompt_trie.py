"""What is distinct in all prompts, in little memory."""

import tracemalloc
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptlang.runtime.prompt_trie import PromptTrie
from promptlang.runtime.usage import Usage

PROMPTS = st.lists(st.integers(0, 2), max_size=8)
STEPS = st.lists(st.tuples(st.booleans(), PROMPTS), max_size=12)

Prefixes = dict[tuple[int, ...], bool]
"""All prefixes, each with whether the model wrote its last token before a prompt held it."""


def prefixes(steps: Iterable[tuple[bool, list[int]]]) -> Prefixes:
    found: Prefixes = {}
    for is_written, tokens in steps:
        for end in range(1, len(tokens) + 1):
            found.setdefault(tuple(tokens[:end]), is_written)
    return found


def trie_of(steps: Iterable[tuple[bool, list[int]]], most_bytes: int = 1 << 20) -> PromptTrie:
    trie = PromptTrie(most_bytes)
    for is_written, tokens in steps:
        if is_written:
            trie.add_written(tokens)
        else:
            trie.add(tokens)
    return trie


def distinct(found: Prefixes) -> int:
    return list(found.values()).count(False)


@given(STEPS)
def test_its_size_is_the_number_of_prefixes_that_no_answer_wrote(steps: list[tuple[bool, list[int]]]) -> None:
    assert trie_of(steps).size == distinct(prefixes(steps))


@given(STEPS, STEPS)
def test_two_tries_together_count_what_they_share_once(
    mine: list[tuple[bool, list[int]]], others: list[tuple[bool, list[int]]]
) -> None:
    trie = trie_of(mine)
    trie.merge(trie_of(others))
    assert trie.size == distinct(prefixes(others) | prefixes(mine))


@given(st.lists(st.tuples(PROMPTS, PROMPTS), max_size=8))
def test_what_goes_on_from_a_prompt_counts_as_the_whole_would(pairs: list[tuple[list[int], list[int]]]) -> None:
    trie = PromptTrie()
    ends = [trie.add(prompt) for prompt, _ in pairs]
    for end, (_, more) in zip(ends, pairs, strict=True):
        trie.add(more, end)
    assert trie.size == len(prefixes((False, prompt + more) for prompt, more in pairs))


@given(STEPS, st.integers(0, 4000))
def test_when_its_memory_is_full_it_counts_too_much_rather_than_too_little(
    steps: list[tuple[bool, list[int]]], most_bytes: int
) -> None:
    trie = trie_of(steps, most_bytes)
    assert trie.bytes <= most_bytes
    assert distinct(prefixes(steps)) <= trie.size <= sum(len(tokens) for is_written, tokens in steps if not is_written)


def rows(count: int, length: int) -> Iterable[list[int]]:
    random = np.random.default_rng(0)
    head = random.integers(0, 50_000, 500).tolist()
    return ([*head, *random.integers(0, 50_000, length).tolist()] for _ in range(count))


def taken(usage: Usage, count: int, length: int) -> int:
    """The memory that stays taken by rows of data, each with its own usage, in bytes."""
    tracemalloc.start()
    try:
        for row in rows(count, length):
            own = Usage()
            own.ask(row)
            usage.add_tokens(own)
            del own
        return tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("length", [1, 200])
def test_a_row_of_data_takes_the_bytes_of_its_own_tokens_and_little_more(length: int) -> None:
    usage = Usage()
    assert taken(usage, 500, length) < 500 * (4 * length + 500)
    assert usage.optimal_tokens <= 500 + 500 * length


def test_rows_without_end_take_no_memory_without_end() -> None:
    usage = Usage(prompts=PromptTrie(most_bytes=100_000))
    assert taken(usage, 1000, 200) < 150_000
    assert 1000 * 199 < usage.optimal_tokens <= 500 + 1000 * 200
