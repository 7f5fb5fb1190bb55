"""Who runs next: continuous batching under a token budget a step.

Running answers go on first, a token each; prompts fill what is left of the budget in chunks. Waiting requests are
admitted by longest cached prefix, and a step of waiting counts as `AGEING` cached tokens: who comes later goes first
only by a prefix that is longer than the other's wait. Where the next in this order has no room, nobody behind it is
admitted, so a large request waits for those that run and for no others. A request about to compute what a running one
is computing waits until that is in the tree, and goes on from there.
"""

from bisect import insort
from operator import attrgetter
from typing import Any, Protocol

from promptlang.runtime.cache.expected_read import ExpectedRead
from promptlang.runtime.cache.kv_cache import KvCache
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.sequence import Sequence
from promptlang.runtime.requests import Answer

AGEING = 1
"""Cached tokens that one step of waiting is worth."""

HEADROOM = 16
"""Slots that stay free for each running answer to grow into when another is admitted."""


class Job(Protocol):
    """A request under way."""

    answer: Answer[Any]
    sequence: Sequence

    @property
    def is_decoding(self) -> bool: ...

    @property
    def unread(self) -> int:
        """Tokens of the prompt that were neither computed nor found in the cache."""
        ...

    @property
    def room_needed(self) -> int:
        """Slots that it takes to get going, with nothing of it cached."""
        ...

    def next_lanes(self, budget: int) -> list[Lane] | None: ...

    def computed(self) -> None: ...

    def release(self) -> None: ...


class Scheduler:
    """Holds the waiting and the running jobs.

    Args:
        cache: where their KV goes.
        tokens_a_step: the most tokens in one model pass.
        jobs_at_once: the most jobs running together.
    """

    def __init__(self, cache: KvCache, tokens_a_step: int, jobs_at_once: int) -> None:
        self._cache = cache
        self._tokens_a_step = tokens_a_step
        self._jobs_at_once = jobs_at_once
        self._waiting: list[_Waiting] = []
        self._running: list[Job] = []
        self._step = 0
        self._asked = 0
        self._tree_seen = 0

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._running

    @property
    def asked(self) -> int:
        """How many times a job has come to wait: the clock by which the cache is told what will be read when."""
        return self._asked

    def add(self, job: Job) -> None:
        """Let a job wait for its turn. The cache is told to expect it."""
        self._asked += 1
        insort(self._waiting, _Waiting(job, self._step, self._asked), key=_RANK)

    def drop(self, job: Job) -> None:
        """Let go of a job that nobody wants any more."""
        if job in self._running:
            job.release()
            self._running.remove(job)
        for entry in [entry for entry in self._waiting if entry.job is job]:
            self._leave(entry)

    def restart(self) -> None:
        """Let every running job wait again with the tokens it has, as if nothing of this step had been planned."""
        self.retire()
        for job in list(self._running):
            job.release()
            self._running.remove(job)
            self.add(job)

    def forget(self) -> list[Job]:
        """Drop every job without asking the cache for anything.

        Returns:
            The jobs.
        """
        jobs = self._running + [entry.job for entry in self._waiting]
        self._running, self._waiting = [], []
        return jobs

    def retire(self) -> None:
        """Forget the jobs that are done."""
        self._running = [job for job in self._running if not job.answer.is_done]

    def next_work(self) -> list[tuple[Job, list[Lane]]]:
        """What goes through the model in this step: nothing only where none of the running jobs fits."""
        self._step += 1
        self._admit()
        budget = self._tokens_a_step
        work: list[tuple[Job, list[Lane]]] = []
        for job in sorted(self._running, key=lambda job: not job.is_decoding):
            if budget <= 0:
                break
            if job not in self._running:
                continue
            lanes = self._plan_job(job, budget, busy=[planned for planned, _ in work])
            if lanes is not None:
                work.append((job, lanes))
                budget -= sum(len(lane.tokens) for lane in lanes)
        return work

    @property
    def youngest(self) -> Job:
        """The running job that was admitted last."""
        return self._running[-1]

    def _plan_job(self, job: Job, budget: int, busy: list[Job]) -> list[Lane] | None:
        """The job's lanes; makes room by pausing others, the youngest first, and the job itself last."""
        while True:
            lanes = job.next_lanes(budget)
            if lanes is not None:
                return lanes
            victim = next((other for other in reversed(self._running) if other not in busy), None)
            if victim is None or (victim is job and len(self._running) == 1):
                return None
            self._pause(victim)
            if victim is job:
                return None

    def _pause(self, job: Job) -> None:
        """Give the job's room back; it resumes later from the tokens it has."""
        job.sequence.commit()
        job.release()
        self._running.remove(job)
        self.add(job)
        job.answer.request.usage.preemptions += 1

    def _admit(self) -> None:
        """Start waiting jobs in their order, as long as there is room."""
        if not self._waiting or len(self._running) >= self._jobs_at_once:
            return
        self._sort_waiting()
        claimed = {job.sequence.next_key() for job in self._running if not job.is_decoding and self._shares(job)}
        for entry in list(self._waiting):
            if entry.next_key in claimed:
                continue
            if len(self._running) >= self._jobs_at_once or not self._has_room(entry):
                return
            entry.job.sequence.attach()
            if self._shares(entry.job):
                claimed.add(entry.job.sequence.next_key())
            self._leave(entry)
            self._running.append(entry.job)

    def _sort_waiting(self) -> None:
        """Bring the order up to date, where the tree has changed."""
        if self._tree_seen == self._cache.tree.changes:
            return
        self._tree_seen = self._cache.tree.changes
        changed = [entry for entry in self._waiting if entry.has_changed]
        for entry in changed:
            entry.look_again()
        if changed:
            self._waiting.sort(key=_RANK)

    def _leave(self, entry: "_Waiting") -> None:
        """The job's turn has come, or nobody wants it any more."""
        self._waiting.remove(entry)
        entry.read.settle()

    def _shares(self, job: Job) -> bool:
        """Whether what the job computes next may serve others: a prompt's last token has to be computed by each."""
        return self._cache.shares and job.sequence.pending > 1

    def _has_room(self, entry: "_Waiting") -> bool:
        """Whether the job can get going without pausing another; alone, it may always try."""
        needed = entry.job.room_needed - entry.cached + self._cache.tree.unlocked(entry.node)
        return not self._running or needed + HEADROOM * len(self._running) <= self._cache.room


class _Waiting:
    """A job that waits.

    Args:
        job: that waits.
        since: the step since which it does.
        at: when its cached prefix will be read, as far as the tree is told.

    Attributes:
        job: as given.
        read: its cached prefix, to be read when its turn comes.
        node: where that prefix ends.
        cached: how long it is.
        next_key: as `Sequence.next_key` will be when the job starts; no token where only the prompt's last is left.
        rank: who has the smallest is next. It stays the same while nothing happens to the prefix.
    """

    def __init__(self, job: Job, since: int, at: int) -> None:
        self.job = job
        self._since = since
        self._look(job.sequence.expect(at))

    @property
    def has_changed(self) -> bool:
        """Whether more of the prompt is cached than it was, or less."""
        node = self.node
        return node.is_evicted or node.end != self.cached or self.next_key[1] in node.children

    def look_again(self) -> None:
        """Find the prefix as it is now."""
        before = self.read
        self._look(self.job.sequence.expect(before.at))
        before.settle()

    def _look(self, read: ExpectedRead) -> None:
        tokens = self.job.sequence.tokens
        self.read = read
        self.node = read.node
        self.cached = read.node.end
        self.next_key = read.node, tokens[self.cached] if self.cached < len(tokens) - 1 else None
        self.rank = AGEING * self._since - self.cached, read.at


_RANK = attrgetter("rank")
