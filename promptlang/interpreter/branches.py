"""The branches of a fork: who lives, who waits at a `keep`, who is pruned."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.said import Said, logprob_of, text_of
from promptlang.interpreter.tasks import Future, Task, TaskCancelled
from promptlang.runtime.backend import Prompt
from promptlang.values.values import Parts, Value


class Pruned(Exception):
    """This branch is not kept."""


@dataclass(frozen=True, eq=False)
class BranchValue(Parts):
    """A branch that survived.

    Its parts are `index`, the variables it bound, `text` (what it added to the prompt, without the chat template's
    markup) and `logprob` (of everything the model wrote in it; missing where the backend doesn't tell).

    Attributes:
        index: its number at the fork.
        fields: the variables it bound.
        said: the last piece of what its prompt holds.
        start: the last piece of what it began with.
        prompt: where it ended; `adopt` goes on from here.
        scope: all its variables.
    """

    index: int
    fields: dict[str, Any]
    said: Said
    start: Said
    prompt: Prompt = field(repr=False)
    scope: dict[str, Any] = field(repr=False)

    def part(self, name: str) -> Value:
        return self._parts[name]

    def part_names(self) -> tuple[str, ...]:
        return tuple(self._parts)

    @property
    def _parts(self) -> dict[str, Value]:
        return {**self._told, "index": self.index, **self.fields}

    @cached_property
    def _told(self) -> dict[str, Value]:
        """What there is to tell about what was said in it."""
        pieces = self.said.since(self.start)
        logprob = logprob_of(pieces)
        return {"text": text_of(pieces)} | ({} if logprob is None else {"logprob": logprob})

    def plain(self) -> Value:
        """In JSON a branch is the variables it bound."""
        return self.fields


@dataclass(frozen=True, eq=False)
class PathValue(BranchValue):
    """A path of a beam that survived; `score` is what its last round was ranked by, `index` its rank."""

    score: float

    @property
    def _parts(self) -> dict[str, Value]:
        return {"score": self.score, **super()._parts}


class Branch:
    """One branch under way.

    Args:
        group: it is one of.
        index: its number.
        tokens: how many the model has written in it so far; None while it waits for a tool.
    """

    def __init__(self, group: "BranchGroup", index: int, tokens: Callable[[], int | None]) -> None:
        self.index = index
        self.tokens = tokens
        self.value: BranchValue | None = None
        self.is_waiting = False
        self._group = group
        self._task: Task[BranchValue | None] | None = None
        self._rounds: dict[int, int] = {}

    @property
    def is_live(self) -> bool:
        return self._task is None or not self._task.is_done

    def run(self, task: Task[BranchValue | None]) -> None:
        """Say which task runs this branch."""
        self._task = task
        task.when_done(self._ended)

    def _ended(self) -> None:
        assert self._task is not None
        if self._task.error is None:
            self.value = self._task.value()
            self._group.settle()
        elif isinstance(self._task.error, TaskCancelled):
            self._group.settle()
        else:
            self._group.failed(self, self._task.error)

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def went_away(self) -> None:
        """It waits for a tool from now on: nobody waits for it at a `keep first`."""
        self._group.look()

    async def arrive_best(self, keep: int, count: int, score: float) -> None:
        """Wait at `keep count by score` until every live branch waits or has ended; raises Pruned unless among the
        best."""
        key = (keep, self._next_round(keep))
        self.is_waiting = True
        try:
            if not await self._group.arrive(key, self, count, score):
                raise Pruned
        finally:
            self.is_waiting = False

    async def arrive_first(self, keep: int, count: int) -> None:
        """Wait at `keep first count` until it is clear who comes first; raises Pruned when too late."""
        key = (keep, self._next_round(keep))
        self.is_waiting = True
        try:
            if not await self._group.arrive_first(key, self, count):
                raise Pruned
        finally:
            self.is_waiting = False

    def _next_round(self, keep: int) -> int:
        self._rounds[keep] = self._rounds.get(keep, 0) + 1
        return self._rounds[keep]


@dataclass
class _Ballot:
    """Who waits at one `keep`, in one round of it."""

    count: int
    votes: list[tuple[Branch, float, Future[bool]]] = field(default_factory=list)

    def decide(self) -> None:
        ranked = sorted(self.votes, key=lambda vote: (-vote[1], vote[0].index))
        for place, (branch, _, kept) in enumerate(ranked):
            branch.is_waiting = False
            kept.resolve(place < self.count)


class _Race:
    """Who comes first at one `keep first`, in one round of it.

    The clock is the tokens that the model wrote in a branch; of branches with equally many, the lower index is first.
    That is the same whatever else the model does meanwhile, so a branch that arrives waits until no other can still
    arrive before it. Nobody waits for a branch that waits for a tool: how long that takes, no count of tokens says.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._arrived: dict[Branch, _Place] = {}
        self._waiting: dict[Branch, Future[bool]] = {}

    def arrive(self, branch: Branch, kept: Future[bool]) -> None:
        """A branch is there; `kept` will say whether it is among the first."""
        place = _place(branch)
        assert place is not None, "who arrives is here"
        self._arrived[branch] = place
        self._waiting[branch] = kept

    @property
    def is_open(self) -> bool:
        """Whether anybody waits."""
        return bool(self._waiting)

    def decide(self, coming: Sequence[Branch]) -> list[Branch]:
        """Tell those for whom it is clear.

        Args:
            coming: branches that may still arrive.

        Returns:
            The branches that are too late, once all that go on are known.
        """
        coming = [branch for branch in coming if branch not in self._arrived]
        earliest = [place for branch in coming if (place := _place(branch)) is not None]
        for branch, kept in sorted(self._waiting.items(), key=lambda one: self._arrived[one[0]]):
            place = self._arrived[branch]
            before = sum(other < place for other in self._arrived.values())
            if before < self.count and before + sum(other < place for other in earliest) >= self.count:
                continue
            del self._waiting[branch]
            branch.is_waiting = False
            kept.resolve(before < self.count)
        return coming if self.is_over else []

    @property
    def is_over(self) -> bool:
        """Whether all that go on are known."""
        return len(self._arrived) - len(self._waiting) >= self.count and not self._waiting

    def was_over_before(self, branch: Branch, place: "_Place") -> bool:
        """Whether all that go on had arrived before a branch was where it is, and it was not among them."""
        return self.is_over and branch not in self._arrived and sorted(self._arrived.values())[self.count - 1] < place


_Place: TypeAlias = tuple[int, int]
"""Tokens written, and the branch's number."""


def _place(branch: Branch) -> _Place | None:
    """When a branch that is under way arrives at the earliest."""
    tokens = branch.tokens()
    return None if tokens is None else (tokens, branch.index)


class BranchGroup:
    """The branches of one fork.

    Args:
        loop: tells when the model has written more.
        is_race: whether there may be a `keep first`: then a fault waits until it is clear that the branch was not too
            late already, so that whether a run fails is the same whatever else the model does.
    """

    def __init__(self, loop: EngineLoop, is_race: bool) -> None:
        self.branches: list[Branch] = []
        self._loop = loop
        self._is_race = is_race
        self._faults: dict[_Place, tuple[Branch, BaseException]] = {}
        self._done: Future[None] = Future()
        self._ballots: dict[tuple[int, int], _Ballot] = {}
        self._races: dict[tuple[int, int], _Race] = {}

    def add(self, tokens: Callable[[], int | None]) -> Branch:
        """A new branch, the next in order.

        Args:
            tokens: as a branch's.
        """
        branch = Branch(self, len(self.branches), tokens)
        self.branches.append(branch)
        return branch

    async def finished(self) -> None:
        """Wait until every branch has ended; raises the first fault."""
        self.settle()
        await self._done

    def cancel(self) -> None:
        """End every branch that still runs."""
        for branch in self.branches:
            branch.cancel()

    def failed(self, branch: Branch, error: BaseException) -> None:
        """A branch has failed."""
        place = _place(branch)
        if place is None or not (self._is_race or self._races):
            self._fail(error)
        else:
            self._faults[place] = branch, error
            self.settle()

    def _fail(self, error: BaseException) -> None:
        if not self._done.is_done:
            self._done.reject(error)

    def _judge(self, live: Sequence[Branch]) -> None:
        """Forget faults of branches that were too late by then, and raise the first that stands."""
        for place, (branch, error) in sorted(self._faults.items()):
            if any(race.was_over_before(branch, place) for race in self._races.values()):
                del self._faults[place]
            elif any((other := _place(one)) is not None and other < place for one in live):
                return
            else:
                self._fail(error)
                return

    def settle(self) -> None:
        """Go on where every live branch waits, or end where none lives."""
        self._review(self._live)
        self._judge(self._live)
        live = self._live
        if not live and not self._done.is_done:
            self._done.resolve(None)
        elif live and all(branch.is_waiting for branch in live):
            if any(race.is_open for race in self._races.values()):
                self._review([])  # whoever waits elsewhere comes no more before these go on
                return
            ballots, self._ballots = self._ballots, {}
            for ballot in ballots.values():
                ballot.decide()

    @property
    def _live(self) -> list[Branch]:
        return [branch for branch in self.branches if branch.is_live]

    def _review(self, coming: Sequence[Branch]) -> None:
        """Tell who comes first, where it is clear."""
        late = [branch for race in self._races.values() for branch in race.decide(coming)]
        if self._faults or any(race.is_open for race in self._races.values()):
            self._loop.watch(self.look)
        else:
            self._loop.unwatch(self.look)
        for branch in late:
            branch.cancel()

    def look(self) -> None:
        """The model has written more, or a branch went away."""
        self._review(self._live)
        self._judge(self._live)

    async def arrive(self, key: tuple[int, int], branch: Branch, count: int, score: float) -> bool:
        """Whether the branch is among the `count` best at this keep."""
        kept: Future[bool] = Future()
        self._ballots.setdefault(key, _Ballot(count)).votes.append((branch, score, kept))
        self.settle()
        return await kept

    async def arrive_first(self, key: tuple[int, int], branch: Branch, count: int) -> bool:
        """Whether the branch is among the `count` first at this keep; those that are too late are ended."""
        kept: Future[bool] = Future()
        self._races.setdefault(key, _Race(count)).arrive(branch, kept)
        self.settle()
        return await kept
