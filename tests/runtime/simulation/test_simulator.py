"""Replays count what a cache saves; Belady's optimum is the most there is."""

import os
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptlang.runtime.cache.eviction import POLICIES, make_policy
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator
from promptlang.runtime.simulation.no_cache import NoCache
from promptlang.runtime.simulation.simulator import Call, NextRead, Replay, belady, footprint, replay, replay_program
from promptlang.runtime.simulation.workloads import agent_program, read_trace, read_trees

DATA = Path(os.environ.get("PROMPTLANG_DATA", "../shared/data"))
TRACE = DATA / "traces" / "mooncake_conversation.jsonl"
SYNTHETIC = DATA / "traces" / "mooncake_synthetic.jsonl"
TREES = [DATA / "traces" / f"deft_{name}ToT.json" for name in ("keyword", "sorting128")]
TRACE_BUDGET = 2_600_000 // 512


def tree(policy: str, budget: int) -> RadixTree:
    return RadixTree(SlotAllocator(budget), make_policy(policy))


def calls_of(*prompts: str) -> list[Call]:
    return [Call(np.array([ord(letter) for letter in prompt], np.int32)) for prompt in prompts]


def test_a_replay_counts_what_was_asked_for_found_and_given_up() -> None:
    result = replay(tree("lru", 5), calls_of("abcd", "abxy", "abcd"))
    assert result == Replay(requested_tokens=12, hit_tokens=5, evicted_tokens=2)
    assert result.hit_rate == 5 / 12


def test_answers_are_cached_but_not_asked_for() -> None:
    (first,) = calls_of("ab")
    (answer,) = calls_of("cd")
    follow_up = calls_of("abcde")[0]
    result = replay(tree("lru", 10), [Call(first.prompt, answer.prompt), follow_up])
    assert result == Replay(requested_tokens=7, hit_tokens=4)


def test_the_footprint_is_the_budget_at_which_nothing_is_evicted() -> None:
    calls = agent_program(4)
    whole = footprint(calls)
    assert replay(tree("lru", whole), calls).evicted_tokens == 0
    assert replay(tree("lru", whole - 1), calls).evicted_tokens > 0
    assert footprint([]) == 0


@pytest.mark.parametrize("run", [lambda calls: replay(tree("lru", 3), calls), lambda calls: belady(calls, 3)])
def test_a_call_larger_than_the_budget_is_refused(run: object) -> None:
    assert callable(run)
    with pytest.raises(ValueError, match="budget of 3"):
        run(calls_of("abcd"))


def test_without_a_cache_nothing_is_found() -> None:
    calls = calls_of("abc", "abc")
    assert replay(NoCache(SlotAllocator(5)), calls) == Replay(requested_tokens=6)


def _best_hits(prompts: list[str], budget: int) -> int:
    """Try every set of prefixes to keep after every prompt."""

    @cache
    def best(index: int, kept: frozenset[str]) -> int:
        if index == len(prompts):
            return 0
        path = {prompts[index][:end] for end in range(1, len(prompts[index]) + 1)}
        everything = kept | path
        room = min(budget, len(everything))
        candidates = (frozenset(chosen) for chosen in combinations(sorted(everything), room))
        options = [chosen for chosen in candidates if path <= chosen]
        return len(path & kept) + max(best(index + 1, chosen) for chosen in options)

    return best(0, frozenset())


@pytest.mark.slow
@given(st.lists(st.text("ab", min_size=1, max_size=3), min_size=1, max_size=6), st.integers(3, 6))
def test_belady_is_the_best_of_all_ways_to_evict(prompts: list[str], budget: int) -> None:
    assert belady(calls_of(*prompts), budget).hit_tokens == _best_hits(prompts, budget)


@given(
    st.lists(st.text("abc", min_size=1, max_size=6), max_size=20),
    st.integers(6, 20),
    st.sampled_from([name for name in POLICIES if name != "program"]),
)
def test_no_policy_beats_belady(prompts: list[str], budget: int, policy: str) -> None:
    calls = calls_of(*prompts)
    best, ours = belady(calls, budget), replay(tree(policy, budget), calls)
    assert ours.requested_tokens == best.requested_tokens
    assert ours.hit_tokens <= best.hit_tokens


@given(st.lists(st.text("abc", min_size=1, max_size=6), max_size=20), st.integers(6, 20))
def test_a_program_that_knows_every_next_read_does_as_well_as_belady(prompts: list[str], budget: int) -> None:
    calls = calls_of(*prompts)
    informed = [Call(call.prompt, next_reads=_all_next_reads(prompts, index)) for index, call in enumerate(calls)]
    assert replay_program(tree("program", budget), informed).hit_tokens == belady(calls, budget).hit_tokens


def _all_next_reads(prompts: list[str], index: int) -> tuple[NextRead, ...]:
    """For each prefix of a prompt, when it is read again."""
    reads = []
    for length in range(1, len(prompts[index]) + 1):
        prefix = prompts[index][:length]
        later = (at for at in range(index + 1, len(prompts)) if prompts[at].startswith(prefix))
        reads.append(NextRead(prefix, length, next(later, None)))
    return tuple(reads)


@pytest.mark.parametrize(("agents", "seed"), [(8, 0), (16, 1), (24, 2)])
def test_on_a_program_of_agents_knowing_the_program_is_worth_nearly_what_knowing_the_future_is(
    agents: int, seed: int
) -> None:
    calls = agent_program(agents, seed)
    budget = footprint(calls) * 3 // 10
    informed = replay_program(tree("program", budget), calls).hit_rate
    assert informed >= 0.95 * belady(calls, budget).hit_rate
    assert informed >= 1.5 * replay(tree("lru", budget), calls).hit_rate


@pytest.mark.slow
@pytest.mark.skipif(not TRACE.exists(), reason=f"{TRACE} is not there; PROMPTLANG_DATA names the folder of data")
def test_a_recorded_conversation_trace_gives_the_known_hit_rates() -> None:
    calls = read_trace(TRACE)
    assert round(replay(tree("lru", TRACE_BUDGET), calls).hit_rate, 2) == 0.11
    assert round(belady(calls, TRACE_BUDGET).hit_rate, 2) == 0.34


@pytest.mark.slow
@pytest.mark.skipif(
    not SYNTHETIC.exists(), reason=f"{SYNTHETIC} is not there; PROMPTLANG_DATA names the folder of data"
)
def test_on_a_recorded_trace_of_requests_recency_is_between_nothing_and_the_best() -> None:
    calls = read_trace(SYNTHETIC)
    budget = footprint(calls) * 3 // 10
    assert 0 < replay(tree("lru", budget), calls).hit_rate <= belady(calls, budget).hit_rate


@pytest.mark.slow
@pytest.mark.parametrize("path", TREES, ids=lambda path: path.stem)
def test_on_recorded_tree_searches_knowing_the_program_is_worth_nearly_what_knowing_the_future_is(path: Path) -> None:
    if not path.exists():
        pytest.skip(f"{path} is not there; PROMPTLANG_DATA names the folder of data")
    calls = read_trees(path, 2)
    budget = max(footprint(calls) * 3 // 10, max(len(call.tokens) for call in calls))
    informed, best = replay_program(tree("program", budget), calls).hit_rate, belady(calls, budget).hit_rate
    assert informed >= 0.95 * best
    assert informed >= replay(tree("lru", budget), calls).hit_rate
