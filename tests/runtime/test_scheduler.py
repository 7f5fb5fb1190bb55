"""Who runs next, with jobs that compute nothing."""

from collections.abc import Sequence as Ordered
from typing import Any

import numpy as np
import pytest

from promptlang.runtime.cache.eviction import make_policy
from promptlang.runtime.cache.integrity import check_tree
from promptlang.runtime.cache.kv_cache import KvCache
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.prefix_cache import Namespace
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.sequence import Sequence
from promptlang.runtime.cache.slots import SlotAllocator
from promptlang.runtime.requests import Answer, GeneratedTokens, ScoreOptions
from promptlang.runtime.scheduler import HEADROOM, Scheduler
from promptlang.runtime.usage import Usage

GROWTH = 4


class Writer:
    """A job that writes an answer of so many tokens, all of them 0."""

    def __init__(self, cache: KvCache, prompt: Ordered[int], answer: int = 1, namespace: Namespace = ()) -> None:
        self.usage = Usage()
        self.answer = Answer(ScoreOptions(None, (), self.usage))  # type: ignore[arg-type]
        self.sequence = Sequence(cache, list(prompt), namespace)
        self._end = len(prompt)
        self._left = answer

    @property
    def is_decoding(self) -> bool:
        return self.sequence.end > self._end

    @property
    def room_needed(self) -> int:
        return self.sequence.pending + GROWTH

    def next_lanes(self, budget: int) -> list[Lane] | None:
        lane = self.sequence.next_lane(budget, growth=GROWTH if self.is_decoding else 0)
        return None if lane is None else [lane]

    def computed(self) -> None:
        if not self.is_decoding:
            self.sequence.commit()
        if not self.sequence.pending:
            self._left -= 1
            if self._left:
                self.sequence.tokens.append(0)
            else:
                self.release()
                self.answer.finish(GeneratedTokens("", [], [], 0.0, "length", True))

    def release(self) -> None:
        self.sequence.release()

    @property
    def is_done(self) -> bool:
        return self.answer.is_done


class Bench:
    """A scheduler on a pool of its own."""

    def __init__(
        self, pool: int, tokens_a_step: int = 512, jobs_at_once: int = 64, policy: str = "program", shares: bool = True
    ) -> None:
        self.tree = RadixTree(SlotAllocator(pool), make_policy(policy))
        self.cache = KvCache(self.tree.allocator, self.tree, shares)
        self.scheduler = Scheduler(self.cache, tokens_a_step, jobs_at_once)

    def add(self, prompt: Ordered[int], answer: int = 1, namespace: Namespace = ()) -> Writer:
        job = Writer(self.cache, prompt, answer, namespace)
        self.scheduler.add(job)
        return job

    def step(self) -> list[Any]:
        """One step; returns the jobs that took part in it."""
        work = self.scheduler.next_work()
        assert work or self.scheduler.is_idle
        assert sum(len(lane.tokens) for _, lanes in work for lane in lanes) <= self.scheduler._tokens_a_step
        for job, _ in work:
            job.computed()
        self.scheduler.retire()
        return [job for job, _ in work]

    def finish(self, most: int = 1000) -> int:
        """Step until nothing is left; returns the steps it took."""
        for steps in range(most):
            if self.scheduler.is_idle:
                self.check_idle()
                return steps
            self.step()
        raise AssertionError(f"not done in {most} steps")

    def check_idle(self) -> None:
        check_tree(self.tree, in_use=0)
        assert self.tree.locked == 0
        assert not any(node.uses for node in self.tree.nodes())


def text(first: int, length: int) -> range:
    """A prompt that shares nothing with one that begins elsewhere."""
    return range(1000 * first, 1000 * first + length)


# Order -----------------------------------------------------------------------------------------------------


def test_the_longest_cached_prefix_goes_first_and_of_equals_the_first_that_came() -> None:
    bench = Bench(1000, jobs_at_once=1)
    bench.add(text(1, 50))
    bench.finish()
    cold, other, warm = bench.add(text(2, 50)), bench.add(text(3, 50)), bench.add(text(1, 50))
    assert [bench.step() for _ in range(3)] == [[warm], [cold], [other]]


def test_a_prefix_that_was_computed_while_a_request_waited_counts() -> None:
    bench = Bench(1000, jobs_at_once=1)
    bench.add(text(1, 40))
    bench.step()
    first, cold, warm = bench.add(text(2, 50)), bench.add(text(3, 50)), bench.add([*text(2, 49), 7])
    assert [bench.step() for _ in range(3)] == [[first], [warm], [cold]]


@pytest.mark.parametrize("evicted", [45, 50])
def test_a_prefix_that_was_evicted_while_a_request_waited_counts_no_more(evicted: int) -> None:
    bench = Bench(120, jobs_at_once=1)
    bench.add(text(1, 50))
    bench.finish()
    running = bench.add(text(2, 40), answer=3)
    bench.step()
    cold, warm = bench.add(text(3, 30)), bench.add(text(1, 50))
    bench.tree.evict(evicted)
    bench.add(text(2, 40))  # the longest cached now
    while not running.is_done:
        bench.step()
    served = [bench.step()[0] for _ in range(3)]
    assert served[1:] == ([warm, cold] if evicted < 50 else [cold, warm])


def test_a_cold_request_waits_no_longer_than_the_warm_ones_prefixes_are_long() -> None:
    bench = Bench(1000, jobs_at_once=1)
    bench.add(text(1, 30))
    bench.finish()
    cold = bench.add(text(2, 50))
    steps = 0
    while not cold.is_done and steps < 100:
        bench.add(text(1, 30))
        bench.step()
        steps += 1
    assert 28 <= steps <= 32


def test_what_a_running_request_computes_others_wait_for_and_go_on_from_there() -> None:
    bench = Bench(1000, tokens_a_step=20)
    shared = text(1, 60)
    first, second = bench.add([*shared, 1, 2]), bench.add([*shared, 3, 4])
    assert [bench.step() for _ in range(3)] == [[first]] * 3
    assert bench.step() == [first, second]
    assert first.is_done
    assert second.is_done


def test_requests_of_other_namespaces_wait_for_nobody_and_those_of_the_same_do() -> None:
    bench = Bench(1000, tokens_a_step=100)
    jobs = [bench.add(text(1, 20), namespace=namespace) for namespace in [(), ("a",), ("a", "b"), ("ab",), ("a",)]]
    assert bench.step() == jobs[:4]
    assert bench.step() == jobs[4:]
    assert bench.tree.size == 4 * 20


def test_without_sharing_nobody_waits_for_what_another_computes() -> None:
    bench = Bench(1000, shares=False)
    jobs = [bench.add(text(1, 20)) for _ in range(3)]
    assert bench.step() == jobs
    bench.check_idle()


# What planning costs -----------------------------------------------------------------------------------------


@pytest.fixture
def walks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How often a prompt was looked for in the tree, and one entry for each time."""
    calls: list[int] = []
    for name in ("find", "peek", "match"):
        original = getattr(RadixTree, name)

        def counted(self: RadixTree, tokens: np.ndarray, *rest: Any, _call: Any = original, **more: Any) -> Any:
            calls.append(len(tokens))
            return _call(self, tokens, *rest, **more)

        monkeypatch.setattr(RadixTree, name, counted)
    return calls


def test_who_waits_is_looked_up_only_when_its_own_prefix_changes(walks: list[int]) -> None:
    bench = Bench(100_000, tokens_a_step=64, jobs_at_once=2)
    bench.add([*text(1, 100), 5])
    bench.finish()
    running = [bench.add(text(first, 200), answer=5) for first in (2, 3)]
    bench.step()
    waiting = [bench.add([*text(1, 100), first]) for first in range(200)]
    walks.clear()
    while not any(job.is_done for job in running):
        bench.step()
    assert not walks
    while not bench.scheduler.is_idle:
        bench.step()
    assert len(walks) == len(waiting)


def test_who_waits_for_room_is_neither_looked_up_nor_counted_as_a_use(walks: list[int]) -> None:
    bench = Bench(100, policy="lfu")
    bench.add(text(1, 20))
    bench.finish()
    running = bench.add(text(2, 60), answer=40)
    bench.step()
    large = bench.add(text(1, 60))
    node = bench.tree.find(np.array(text(1, 20), np.int32))
    walks.clear()
    hits = node.hits
    for _ in range(5):
        assert bench.step() == [running]
    assert not walks
    assert node.hits == hits
    bench.finish()
    assert large.is_done


def test_a_prompt_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench(1000, jobs_at_once=1)
    job = bench.add(text(1, 100), answer=3)
    converted: list[int] = []
    array = np.array

    def counted(values: Any, *rest: Any, **more: Any) -> Any:
        converted.append(len(values))
        return array(values, *rest, **more)

    monkeypatch.setattr(np, "array", counted)
    for prompt in (text(2, 50), text(3, 50)):
        bench.add(prompt)
    bench.finish()
    assert job.is_done
    assert sum(converted) <= 1 + 49 + 1 + 49 + 1 + 3


# Room ------------------------------------------------------------------------------------------------------


def test_a_request_is_admitted_where_it_leaves_the_running_ones_their_headroom() -> None:
    room = 50 + GROWTH + 2 * HEADROOM
    for spare, admitted in ((-1, False), (0, True)):
        bench = Bench(30 + 30 + 2 + room + spare)
        running = [bench.add(text(1, 30), answer=90), bench.add(text(2, 30), answer=90)]
        bench.step()
        bench.tree.allocator.allocate(bench.cache.room - room - spare)
        waiting = bench.add(text(3, 50))
        assert bench.step() == [*running, *[waiting] * admitted]


@pytest.mark.parametrize("is_locked", [False, True])
@pytest.mark.parametrize("spare", [-1, 0])
def test_what_is_cached_of_a_request_needs_no_room_but_its_protection(is_locked: bool, spare: int) -> None:
    """Of a prompt of 60 tokens, 50 are cached: free or in use by another, they are not to be counted as room."""
    bench = Bench(1000)
    bench.add(text(1, 50))
    bench.finish()
    running = bench.add([*text(1, 50), 1, 2] if is_locked else text(2, 30), answer=90)
    bench.step()
    wanted = 10 + GROWTH + HEADROOM + spare
    bench.tree.evict(bench.tree.evictable - (0 if is_locked else 50))
    bench.tree.allocator.allocate(bench.tree.allocator.available - wanted)
    waiting = bench.add(text(1, 60))
    assert bench.step() == [running, *[waiting] * (spare == 0)]


def test_alone_a_request_may_try_whatever_room_there_is() -> None:
    bench = Bench(64)
    assert bench.add(text(1, 62)) in bench.step()


@pytest.mark.parametrize("pool", range(180, 190))
def test_the_youngest_gives_way_and_resumes(pool: int) -> None:
    bench = Bench(pool)
    jobs = [bench.add(text(first, length), answer=60) for first, length in enumerate((40, 41, 42))]
    bench.finish()
    assert all(job.is_done for job in jobs)
    preemptions = [job.usage.preemptions for job in jobs]
    assert preemptions[0] == 0
    assert preemptions[2] > 0


def test_a_large_request_is_served_among_small_ones_that_keep_coming() -> None:
    """As soon as it is the next, nobody is admitted before it."""
    bench, small = Bench(200), []

    def small_one_comes() -> None:
        small.append(bench.add(text(len(small) + 10, 20), answer=5 + len(small) % 7))
        bench.step()

    for _ in range(20):
        small_one_comes()
    large = bench.add(text(1, 150))
    for _ in range(30):
        small_one_comes()
    assert large.is_done
    bench.finish()
    assert all(job.is_done for job in small)


# Dropping --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("steps", range(4))
def test_a_dropped_job_leaves_nothing_whether_it_waits_or_runs(steps: int) -> None:
    bench = Bench(1000, tokens_a_step=30, jobs_at_once=1)
    running, waiting = bench.add(text(1, 50), answer=9), bench.add(text(2, 50))
    for _ in range(steps):
        bench.step()
    for job in (waiting, running):
        bench.scheduler.drop(job)
    assert bench.scheduler.is_idle
    bench.check_idle()


@pytest.mark.parametrize("steps", range(4))
def test_dropping_all_after_a_restart_leaves_nothing_locked_owned_or_expected(steps: int) -> None:
    bench = Bench(1000, tokens_a_step=30, jobs_at_once=2)
    jobs = [bench.add(text(first, 50), answer=9) for first in range(5)]
    for _ in range(steps):
        bench.step()
    bench.scheduler.restart()
    for job in jobs:
        bench.scheduler.drop(job)
    assert bench.scheduler.is_idle
    bench.check_idle()


def test_an_interrupted_pass_leaves_its_slots() -> None:
    """Slots were given out for a pass that never came back."""
    bench = Bench(1000, tokens_a_step=30)
    job = bench.add(text(1, 50))
    bench.scheduler.next_work()
    bench.scheduler.restart()
    bench.scheduler.drop(job)
    bench.check_idle()
