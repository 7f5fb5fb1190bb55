"""What a prompt says: its text and turns, and how answers are asked for and read. Waiting is left to `prompt.py` and
`async_prompt.py`."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from contextvars import Context
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar, overload

from promptlang.api.errors import Pruned, RunError, UsageError
from promptlang.api.options import options_of
from promptlang.api.statements import Chosen, Statements, Written
from promptlang.api.strands import Host, beside
from promptlang.api.templates import filled
from promptlang.api.types import AnswerType
from promptlang.diagnostics.rendering import did_you_mean
from promptlang.interpreter.branches import BranchValue
from promptlang.interpreter.run import Checkpoint
from promptlang.interpreter.tasks import Task
from promptlang.runtime.requests import Finish
from promptlang.syntax.limits import MOST_RETRIES
from promptlang.values.options import GEN_OPTIONS, SELECT_OPTIONS, Options

T = TypeVar("T")


@dataclass(frozen=True)
class Answer(Generic[T]):
    """An answer with what there is to tell about it.

    Attributes:
        value: of the type that was asked for.
        finish: why it ended: `stop`, `length`, `end` or `done`.
        logprobs: natural log-probability of each of its tokens.
    """

    value: T
    finish: Finish
    logprobs: tuple[float, ...]


@dataclass(frozen=True)
class Choice(Generic[T]):
    """An option that was chosen, among all.

    Attributes:
        value: the option.
        probs: how likely each option is, among them; by option.
        scores: what they were compared by.
    """

    value: T
    probs: Mapping[T, float]
    scores: Mapping[T, float]


@dataclass(frozen=True)
class Pending(Generic[T]):
    """A statement under way, and how its value is read."""

    task: Task[Any]
    read: Callable[[Any], T]


class Speech:
    """The part of a prompt that never waits.

    Args:
        statements: on its frame.
        host: runs the functions of its branches.
    """

    def __init__(self, statements: Statements, host: Host) -> None:
        self._statements = statements
        self._host = host
        self._turn: str | None = None
        self._unentered: Turn | None = None
        self._state = "open"
        self._finish: Finish | None = None
        self._calls: list[Task[Any]] = []
        self._kept: BranchValue | None = None
        self._previous: Any = None
        self._index = 0

    # Text and turns ------------------------------------------------------------------------------------

    def text(self, text: str, /, **values: Any) -> None:
        """Extend the prompt.

        Args:
            text: as it is; with `values`, a template with a hole `${name}` for each.

        Raises:
            UsageError: a hole without a value, or a value without a hole.
        """
        self._ready().text(filled(text, values))

    @overload
    def system(self, /) -> "Turn": ...
    @overload
    def system(self, text: str, /, **values: Any) -> None: ...
    def system(self, text: str | None = None, /, **values: Any) -> "Turn | None":
        """A system turn: with this text, or, without one, with what the `with` block says."""
        return self._role("system", text, values)

    @overload
    def user(self, /) -> "Turn": ...
    @overload
    def user(self, text: str, /, **values: Any) -> None: ...
    def user(self, text: str | None = None, /, **values: Any) -> "Turn | None":
        """A user's turn, as `system`."""
        return self._role("user", text, values)

    @overload
    def assistant(self, /) -> "Turn": ...
    @overload
    def assistant(self, text: str, /, **values: Any) -> None: ...
    def assistant(self, text: str | None = None, /, **values: Any) -> "Turn | None":
        """A turn of the model, as `system`."""
        return self._role("assistant", text, values)

    @overload
    def role(self, name: str, /) -> "Turn": ...
    @overload
    def role(self, name: str, text: str, /, **values: Any) -> None: ...
    def role(self, name: str, text: str | None = None, /, **values: Any) -> "Turn | None":
        """A turn of another role that the model's template knows, as `system`."""
        return self._role(name, text, values)

    def _role(self, name: str, text: str | None, values: Mapping[str, Any]) -> "Turn | None":
        statements = self._ready()
        if self._turn is not None:
            raise UsageError(f"roles don't nest: this stands in a turn of `{self._turn}`")
        if text is None:
            self._unentered = Turn(self, name)
            return self._unentered
        said = filled(text, values)
        statements.open(name)
        statements.text(said)
        statements.close()
        return None

    def _enter(self, turn: "Turn") -> None:
        self._unentered = None
        self._ready().open(turn.role)
        self._turn = turn.role

    def _leave(self) -> None:
        self._turn = None
        self._statements.close()

    # Other statements that nobody waits for --------------------------------------------------------------

    def pin(self) -> None:
        """Keep the prompt up to here in the cache until the run ends."""
        self._ready().pin()

    def log(self, value: Any, /) -> None:
        """Write a value to the trace."""
        self._ready().log(value)

    def attempts(self, retries: int) -> "Iterator[Attempt]":
        """Tries at what follows, the first and at most so many more: `for attempt in p.attempts(3): with attempt: ...`.

        Each begins where the first began; `attempt.require(condition)` ends one that is no good. After the last the
        run fails.
        """
        if isinstance(retries, bool) or not isinstance(retries, int) or not 0 <= retries <= MOST_RETRIES:
            raise UsageError(f"attempts needs a count of retries from 0 to {MOST_RETRIES}, not {retries!r}")
        for left in range(retries, -1, -1):
            attempt = Attempt(self, retries, left)
            yield attempt
            if not attempt.was_entered:
                raise UsageError("an attempt has a block of its own: `for attempt in p.attempts(3): with attempt: ...`")
            if not attempt.has_failed:
                return

    @property
    def finish(self) -> Finish | None:
        """Why the last answer here ended: `stop`, `length`, `end` or `done`."""
        return self._finish

    def _adopt(self, branch: "Speech", kept: BranchValue) -> None:
        if branch._statements.live is not self._statements.live:
            raise UsageError("this branch is of another run; a prompt goes on from branches of its own")
        self._ready().adopt(kept)

    # Answers, to be waited for -----------------------------------------------------------------------------

    def _gen(self, wanted: AnswerType[T], options: Mapping[str, Any], *, whole: bool) -> Pending[Any]:
        _refuse_unknown("gen", options, GEN_OPTIONS)
        given = {**options, "logprobs": True} if whole else options

        def read(written: Written) -> Any:
            self._finish = written.finish or "done"
            value = wanted.value(written.value)
            return Answer(value, self._finish, written.logprobs) if whole else value

        return Pending(self._ready().gen(wanted.shape, given), read)

    def _select(self, options: Any, given: Mapping[str, Any], *, whole: bool) -> Pending[Any]:
        _refuse_unknown("select", given, SELECT_OPTIONS)
        among = options_of(options)

        def read(chosen: Chosen) -> Any:
            self._finish = "done"
            value = among.values[chosen.index]
            if not whole:
                return value
            probs, scores = (dict(zip(among.values, numbers, strict=True)) for numbers in (chosen.probs, chosen.scores))
            return Choice(value, probs, scores)

        return Pending(self._ready().select(among.texts, given, scores=whole), read)

    def _score(self, text: str) -> Pending[float]:
        return Pending(self._ready().score(text), float)

    # As a branch -------------------------------------------------------------------------------------------

    async def _ran(self, function: Callable[..., Any], context: Context) -> Any:
        """What a function says on this prompt, beside others; in the loop. Gives what the function returns."""
        run = partial(self._run, function)
        value = await beside(self._host, self._statements.live, run, context, self._statements.cancel)
        await self._settled()
        return value

    def _run(self, function: Callable[..., Any]) -> Any:
        """Call a function on this prompt; on its host."""
        raise NotImplementedError

    def _rest(self) -> Pending[None]:
        """The end of all that was begun here, to be waited for."""
        return Pending(self._statements.live.spawn(self._settled()), lambda value: value)

    async def _settled(self) -> None:
        """Wait for all that was begun and that nobody waits for, in the loop; raises what went wrong with it."""
        for fault in self._statements.faults():
            raise fault
        for call in self._calls:
            await call

    def _returned(self) -> None:
        """The function that it was given to has returned.

        Raises:
            Pruned: the branch was not kept, whatever its function did about it.
        """
        was_pruned = self._state == "pruned"
        self._state = "ended"
        if was_pruned:
            raise Pruned

    def _end(self, value: BranchValue) -> None:
        """Take down how a branch ended that is kept."""
        self._kept = value

    # State -------------------------------------------------------------------------------------------------

    def _ready(self) -> Statements:
        """The statements, where one may be said now.

        Raises:
            UsageError: the prompt is at its end, waits for its branches, or a turn was not entered.
        """
        if self._unentered is not None:
            role = self._unentered.role
            self._unentered = None
            raise UsageError(f"a turn of `{role}` without text was not entered; write `with p.{role}():`")
        if self._state == "pruned":
            raise Pruned
        if self._state != "open":
            raise UsageError(_REFUSALS[self._state])
        return self._statements


def _refuse_unknown(what: str, given: Mapping[str, Any], known: Options) -> None:
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        meant = did_you_mean(unknown, known)
        raise UsageError(f"{what} has no option {unknown!r}; {meant or 'it takes ' + ', '.join(known)}")


_REFUSALS = {
    "forked": "this prompt waits for its branches; a branch extends the prompt that it is given",
    "waiting": "this prompt waits for an answer that was asked for elsewhere; one statement comes after another",
    "ended": "this prompt is at its end: its function has returned",
}


class Turn(AbstractContextManager[None]):
    """A turn to be filled: `with p.assistant(): ...`."""

    def __init__(self, prompt: Speech, role: str) -> None:
        self._prompt = prompt
        self.role = role

    def __enter__(self) -> None:
        self._prompt._enter(self)

    def __exit__(self, *_: object) -> None:
        self._prompt._leave()


class _Unmet(Exception):
    """What an attempt asked for was not met."""


class Attempt(AbstractContextManager["Attempt"]):
    """One try; see `Speech.attempts`.

    Attributes:
        number: 0 for the first.
        has_failed: whether another follows.
    """

    def __init__(self, prompt: Speech, retries: int, left: int) -> None:
        self.number = retries - left
        self.has_failed = False
        self._prompt = prompt
        self._left = left
        self._checkpoint: Task[Checkpoint] | None = None

    @property
    def was_entered(self) -> bool:
        """Whether its block was run."""
        return self._checkpoint is not None

    def require(self, condition: object, message: str = "what was required is not met") -> None:
        """End this try unless the condition holds: the prompt goes back, and the next one begins.

        Raises:
            RunError: it was the last.
        """
        if not condition:
            raise _Unmet(message)

    def __enter__(self) -> "Attempt":
        self._checkpoint = self._prompt._ready().checkpoint()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> bool:
        assert self._checkpoint is not None
        statements = self._prompt._statements
        self.has_failed = isinstance(error, _Unmet)
        if isinstance(error, _Unmet) and self._left:
            statements.restore(self._checkpoint, str(error))
        statements.forget(self._checkpoint)
        if isinstance(error, _Unmet) and not self._left:
            after = f" (after {self.number} retries)" if self.number else ""
            raise RunError(f"{error}{after}", statements.frame.path) from None
        return self.has_failed
