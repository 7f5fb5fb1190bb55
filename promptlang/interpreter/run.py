"""What a run consists of: frames, each one prompt with its variables."""

from collections import ChainMap, Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from promptlang.compiler.graph import Graph
from promptlang.diagnostics.source import Span
from promptlang.interpreter.branches import Branch
from promptlang.interpreter.observer import SilentObserver, Watched
from promptlang.interpreter.said import Message, Said, messages_of
from promptlang.interpreter.tasks import Future, Task
from promptlang.runtime.backend import Namespace, OnPrompt, Pin, Prompt
from promptlang.runtime.requests import Answer
from promptlang.runtime.usage import Usage
from promptlang.syntax.ast import Expression
from promptlang.values.expressions import evaluate
from promptlang.values.values import Value, render_text


class RunError(Exception):
    """A fault while a program ran.

    Args:
        message: what happened, in one sentence.
        span: the statement.
        path: the branch it happened in, outermost first (`drafts[2]`).
    """

    def __init__(self, message: str, span: Span, path: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self.path = path


@dataclass
class Run:
    """One program run.

    Attributes:
        seed, row: with a branch's path and a count of its calls, what its random numbers depend on.
        usage: its numbers.
        observer: who watches.
        namespace: of all its prompts.
        prompts: all prompts it made; released at its end.
        pins: what `pin` keeps, and the branch that says so; let go at its end.
        calls: how many programs were called.
        branches: how many branches have not ended.
    """

    seed: int
    row: int
    usage: Usage = field(default_factory=Usage)
    observer: Watched = field(default_factory=lambda: Watched(SilentObserver()))
    namespace: Namespace = ()
    prompts: list[Prompt] = field(default_factory=list)
    pins: list[tuple[tuple[str, ...], Pin]] = field(default_factory=list)
    calls: int = 0
    branches: int = 0

    def release(self) -> None:
        """Let go of all prompts and pins."""
        for prompt in self.prompts:
            prompt.release()
        for _, pin in self.pins:
            pin.release()


@dataclass(eq=False)
class Frame:
    """One prompt with its variables: a program's own, a branch's, or that of a program that was called.

    Attributes:
        run, graph: what it belongs to.
        prompt: what the model sees.
        scope: the variables by name; one whose call is under way holds its task.
        constants: what the names of the file mean.
        path: the branch, as messages say it, outermost first.
        key: the branch, as random numbers depend on it: as its path, with counts.
        branch: its place among its siblings, where it is a branch.
        own: the names of variables that were bound here.
        pending: calls that were started.
        said: the last piece of what was added to the prompt.
        start: what was said when the branch began.
        answer: what the model is asked here now.
        started: calls that began before their place, by the node that will bind them.
        answers: how many answers were asked for on this prompt.
        tokens: written by the model here and in the branches that were kept; what it calls does not count.
        is_away: whether it waits for a tool.
        made: how often each program was called and each fork made, by what the path calls them.
    """

    run: Run
    graph: Graph
    prompt: Prompt
    scope: dict[str, Any]
    constants: dict[str, Value]
    path: tuple[str, ...] = ()
    key: tuple[int | str, ...] = ()
    branch: Branch | None = None
    own: set[str] = field(default_factory=set)
    pending: list[Task[Any]] = field(default_factory=list)
    said: Said = field(default_factory=Said)
    start: Said = field(init=False)
    answer: Answer[Any] | None = None
    tokens: int = 0
    is_away: bool = False
    started: dict[int, Task[Any]] = field(default_factory=dict)
    answers: int = 0
    made: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.start = self.said

    def say(self, text: str, logprob: float | None = 0.0) -> None:
        """Take down what was added to the prompt."""
        self.said = Said(self.said, text, logprob, depth=self.said.depth + 1)

    def begin_turn(self, role: str) -> None:
        """Begin a turn, and take it down."""
        self.said = Said(self.said, turn=role, depth=self.said.depth + 1)
        self.prompt.open(role)
        self.run.observer.turn(self.path, role)

    def end_turn(self) -> None:
        """End the turn, and take it down."""
        self.said = Said(self.said, turn="", depth=self.said.depth + 1)
        self.prompt.close()
        self.run.observer.turn_ended(self.path)

    def value(self, expression: Expression) -> Any:
        """An expression's value; whatever it reads must be known."""
        return evaluate(expression, ChainMap(self.scope, self.constants))

    def text(self, expression: Expression) -> str:
        """An expression's value as it stands in a prompt."""
        return render_text(self.value(expression))

    @contextmanager
    def away(self) -> Iterator[None]:
        """While it waits for a tool, nobody waits for it."""
        self.is_away = True
        if self.branch is not None:
            self.branch.went_away()
        try:
            yield
        finally:
            self.is_away = False

    @property
    def on_prompt(self) -> OnPrompt | None:
        """Takes the prompt that a model is asked about here, where somebody wants to see it."""
        return self.run.observer.on_prompt(self.run.row, self.path)

    def cancel_calls(self) -> None:
        """End the programs that were called here and still run."""
        for task in self.pending:
            task.cancel()

    @property
    def tokens_so_far(self) -> int:
        """`tokens`, with those of the answer under way."""
        return self.tokens + (self.answer.written if self.answer is not None else 0)

    def answer_key(self) -> tuple[int | str, ...]:
        """Names the next answer here, for random numbers: the same in every run, whatever else goes on, whatever a
        pass took out or moved, and by whichever door the program came in."""
        self.answers += 1
        return (*self.key, self.answers)

    def fork_key(self, name: str) -> tuple[int | str, ...]:
        """Names the next fork of this name, as `answer_key` names answers."""
        self.made[name] += 1
        return (*self.key, name, self.made[name])

    def call_label(self, callee: str, skipped: int = 0) -> str:
        """What a call of a program adds to the path: `route()`, `route()[1]` for the second one.

        Args:
            skipped: how many before it were taken out.
        """
        label = f"{callee}()"
        earlier = self.made[label] + skipped
        self.made[label] = earlier + 1
        return f"{label}[{earlier}]" if earlier else label

    @property
    def variables(self) -> dict[str, Any]:
        """What was bound here, without what came from outside."""
        return {name: value for name, value in self.scope.items() if name in self.own}

    def bind(self, name: str | None, value: Any) -> None:
        """Give a variable its value; no name, no variable."""
        if name is not None:
            self.scope[name] = value
            self.own.add(name)
            if not isinstance(value, Future):
                self.run.observer.bound(self.path, name, value)


class Checkpoint:
    """A frame as it was, to go back to.

    Args:
        frame: whose prompt and variables are remembered; its counts of answers go on, so that what is drawn after
            going back is drawn anew.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame
        self._prompt = frame.prompt.fork()
        self._scope = dict(frame.scope)
        self._own = set(frame.own)
        self._pins = len(frame.run.pins)
        self._calls = len(frame.pending)
        self._said = frame.said

    def restore(self) -> None:
        """Go back; calls that were started since are cancelled, and pins that were made since, in branches and calls
        too, are let go."""
        frame = self._frame
        for task in frame.pending[self._calls :]:
            task.cancel()
        del frame.pending[self._calls :]
        frame.prompt.release()
        frame.prompt = self._prompt.fork()
        frame.run.prompts.append(frame.prompt)
        for path, pin in frame.run.pins[self._pins :]:
            if path[: len(frame.path)] == frame.path:
                pin.release()
        frame.scope, frame.own, frame.said = dict(self._scope), set(self._own), self._said

    def release(self) -> None:
        """Let go of the prompt as it was."""
        self._prompt.release()


@dataclass(frozen=True)
class Outcome:
    """How a program ended: its result, its variables, its numbers, and the last piece of what its prompt held."""

    result: Value
    variables: dict[str, Value]
    usage: Usage
    said: Said = field(repr=False)

    @property
    def messages(self) -> list[Message]:
        """The conversation, turn by turn."""
        return messages_of(self.said.since(Said()))
