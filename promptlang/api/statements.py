"""The statements of a prompt, for functions that wait in a strand and for coroutines: each begins at once, and says
what its value will be.

A statement is a node as of a graph, with values in place of expressions; `LiveRun` runs it.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypedDict, TypeVar

from promptlang.compiler.graph import (
    AdoptNode,
    BeamNode,
    ForkNode,
    GenNode,
    KeepNode,
    LogNode,
    Node,
    PinNode,
    ScoreNode,
    SelectNode,
    TextNode,
)
from promptlang.diagnostics.source import Source, Span
from promptlang.grammar.shapes import Shape
from promptlang.interpreter import beams, forks
from promptlang.interpreter.branches import BranchValue
from promptlang.interpreter.live import LiveRun, work
from promptlang.interpreter.machine import located
from promptlang.interpreter.run import Checkpoint, Frame
from promptlang.interpreter.tasks import Task
from promptlang.runtime.requests import Finish
from promptlang.syntax.ast import Expression, Template
from promptlang.values.expressions import Given
from promptlang.values.values import Answered

T = TypeVar("T")

NOWHERE = Span(Source("", "<python>"), 0, 0)
"""Where statements of Python stand: their exceptions have Python's own lines."""

_NAME = "it"
"""What a statement binds, for as long as it takes to read it."""

Body: TypeAlias = Callable[[Frame, int], Coroutine[Any, None, Any]]
"""What a branch does, given its frame and its number; gives its value."""


class GenOptions(TypedDict, total=False):
    """The options of `gen`; each means what it means in the language."""

    max_tokens: int
    min_tokens: int
    stop: str | Sequence[str]
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    seed: int
    heal: bool
    pretty: bool


class SelectOptions(TypedDict, total=False):
    """The options of `select`; each means what it means in the language."""

    by: Literal["sum", "mean", "prior", "greedy"]
    temperature: float
    heal: bool


@dataclass(frozen=True)
class Written:
    """An answer as it was written.

    Attributes:
        value: of the language.
        finish: why it ended; None for values that can't say.
        logprobs: natural log-probability of each token, where they were asked for.
    """

    value: Any
    finish: Finish | None
    logprobs: tuple[float, ...]


@dataclass(frozen=True)
class Chosen:
    """An option as it was chosen.

    Attributes:
        index: which.
        probs, scores: of all options, in order.
    """

    index: int
    probs: tuple[float, ...]
    scores: tuple[float, ...]


class Statements:
    """What can be said on one prompt.

    Args:
        live: its run.
        frame: the prompt.

    Attributes:
        awaited: the statement that somebody waits for.
    """

    def __init__(self, live: LiveRun, frame: Frame) -> None:
        self.live = live
        self.frame = frame
        self.awaited: Task[Any] | None = None
        self._told: list[Task[Any]] = []

    def cancel(self) -> None:
        """End the statement that somebody waits for; in the loop."""
        if self.awaited is not None:
            self.awaited.cancel()

    def faults(self) -> Iterable[BaseException]:
        """What went wrong with statements that nobody waited for, each once."""
        done = [task for task in self._told if task.is_done]
        self._told = [task for task in self._told if not task.is_done]
        return [task.error for task in done if task.error is not None]

    # Nobody waits for these ------------------------------------------------------------------------------

    def text(self, text: str) -> None:
        """Extend the prompt."""
        self._tell(TextNode(id=0, span=NOWHERE, text=Template(span=NOWHERE, parts=(text,))))

    def open(self, role: str) -> None:
        """Begin a turn."""
        self._told.append(self.live.spawn(work(lambda: self.frame.begin_turn(role))))

    def close(self) -> None:
        """End the turn."""
        self._told.append(self.live.spawn(work(self.frame.end_turn)))

    def pin(self) -> None:
        """Keep the prompt so far in the cache until the run ends."""
        self._tell(PinNode(id=0, span=NOWHERE))

    def log(self, value: Any) -> None:
        """Write to the trace."""
        self._tell(LogNode(id=0, span=NOWHERE, value=_given(value)))

    def adopt(self, branch: BranchValue) -> None:
        """Go on from a branch."""
        self._tell(AdoptNode(id=0, span=NOWHERE, branch=_given(branch)))

    def _tell(self, node: Node) -> None:
        self._told.append(self.live.do(node, self.frame))

    # Answers -----------------------------------------------------------------------------------------------

    def gen(self, shape: Shape | None, options: Mapping[str, Any]) -> Task[Written]:
        """An answer."""
        given = _all_given(options)
        node = GenNode(id=0, span=NOWHERE, target=_NAME, writes=(_NAME,), shape=shape, options=given)
        return self.live.spawn(self._written(node))

    async def _written(self, node: GenNode) -> Written:
        value = await self.live.done(node, self.frame)
        extras: Mapping[str, Any] = value.extras if isinstance(value, Answered) else {}
        return Written(value, extras.get("finish"), tuple(extras.get("logprobs", ())))

    def select(self, texts: Sequence[str], options: Mapping[str, Any], *, scores: bool) -> Task[Chosen]:
        """One of some options."""
        given = _all_given({**options, "options": list(texts)})
        node = SelectNode(
            id=0, span=NOWHERE, target=_NAME, writes=(_NAME,), choices=(), options=given, reads_scores=scores
        )
        return self.live.spawn(self._chosen(node, texts))

    async def _chosen(self, node: SelectNode, texts: Sequence[str]) -> Chosen:
        value = await self.live.done(node, self.frame)
        return Chosen(texts.index(str(value)), *(tuple(value.extras[name].values()) for name in ("probs", "scores")))

    def score(self, text: str) -> Task[float]:
        """How likely a text is here."""
        node = ScoreNode(id=0, span=NOWHERE, target=_NAME, writes=(_NAME,), text=_given(text))
        return self.live.do(node, self.frame)

    # Branches ----------------------------------------------------------------------------------------------

    def fork(
        self, name: str, count: int, arms: Sequence[str], body: Body, *, or_none: bool
    ) -> "Task[list[BranchValue]]":
        """Branches from here; the value of each is the field `value` of it."""
        node = ForkNode(
            id=0,
            span=NOWHERE,
            kind="arms" if arms else "count",
            name=name,
            over=_given(count),
            targets=(),
            arms=tuple(arms),
            bodies=(),
            allow_none=or_none,
        )

        async def branch(index: int, frame: Frame) -> BranchValue:
            value = await body(frame, index)
            return BranchValue(index, {"value": value}, frame.said, frame.start, frame.prompt, frame.scope)

        return self.live.spawn(self._branches(node, lambda: forks.fork(self.live.machine, node, self.frame, branch)))

    def beam(
        self,
        name: str,
        depth: int,
        width: int,
        branch: int,
        body: Callable[[Frame], Coroutine[Any, None, Any]],
        by: Callable[[Any], Any],
    ) -> "Task[list[BranchValue]]":
        """A search in rounds; the value of a path is the field `value` of it."""
        node = BeamNode(
            id=0,
            span=NOWHERE,
            name=name,
            depth=_given(depth),
            width=_given(width),
            branch=_given(branch),
            by=_given(None),
            body=self.frame.graph.body,
        )

        async def path(frame: Frame) -> float:
            value = await body(frame)
            frame.bind("value", value)
            return forks.rank_of(_given(by(value)), frame, "beam")

        return self.live.spawn(self._branches(node, lambda: beams.beam(self.live.machine, node, self.frame, path)))

    async def _branches(
        self, node: ForkNode | BeamNode, run: Callable[[], Coroutine[Any, None, None]]
    ) -> list[BranchValue]:
        with located(node, self.frame):
            await run()
        self.frame.own.discard(node.name)
        branches = self.frame.scope.pop(node.name)
        return branches if isinstance(branches, list) else [one for one in branches.fields.values() if one is not None]

    def keep(self, kind: Literal["best", "where", "first"], count: int | None, by: Any) -> Task[None]:
        """Prune the branches of the fork."""
        node = KeepNode(
            id=0,
            span=NOWHERE,
            kind=kind,
            count=None if count is None else _given(count),
            by=_given(by),
        )
        return self.live.do(node, self.frame)

    # Going back --------------------------------------------------------------------------------------------

    def checkpoint(self) -> Task[Checkpoint]:
        """The prompt as it is, to go back to."""
        return self.live.spawn(work(lambda: Checkpoint(self.frame)))

    def restore(self, checkpoint: Task[Checkpoint], why: str) -> None:
        """Go back."""

        def back() -> None:
            self.frame.run.observer.retried(self.frame.path, why)
            checkpoint.value().restore()

        self._told.append(self.live.spawn(work(back)))

    def forget(self, checkpoint: Task[Checkpoint]) -> None:
        """Let go of a checkpoint."""
        self._told.append(self.live.spawn(work(lambda: checkpoint.value().release())))


def _all_given(options: Mapping[str, Any]) -> dict[str, Expression]:
    return {name: _given(value) for name, value in options.items()}


def _given(value: Any) -> Given:
    return Given(span=NOWHERE, value=value)
