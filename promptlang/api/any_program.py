"""Programs: what those of files and functions have in common, whether they are waited for or awaited."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast

from promptlang.api.engine import Engine, default_engine
from promptlang.api.errors import ArgumentsError
from promptlang.api.events import Event, Recorder
from promptlang.api.speech import Pending, Speech
from promptlang.api.strands import Host, Running
from promptlang.interpreter.observer import Observer, SilentObserver
from promptlang.interpreter.said import Message
from promptlang.runtime.usage import Usage
from promptlang.session.rows import RowsAtOnce
from promptlang.values.values import Value

P = ParamSpec("P")
R = TypeVar("R")


@dataclass(frozen=True)
class Outcome(Generic[R]):
    """How a program ended.

    Attributes:
        result: what it returned.
        variables: of a file's program, by name.
        messages: its conversation, turn by turn.
        usage: its numbers.
        trace: what happened, in order; of `run` alone.
    """

    result: R
    variables: Mapping[str, Any]
    messages: tuple[Message, ...]
    usage: Usage
    trace: tuple[Event, ...] = ()

    def _repr_html_(self) -> str:
        """For notebooks: the conversation."""
        from promptlang.api.html import conversation_html  # nobody else needs it

        return conversation_html(self.trace)


@dataclass(frozen=True)
class How:
    """How a program is run.

    Attributes:
        engine: on which model; None for the default one.
        seed: of its random numbers; None for the engine's.
        timeout: seconds a run may take; None for no end.
        tools: functions by name, for the tools that a file declares.
    """

    engine: Engine | None = None
    seed: int | None = None
    timeout: float | None = None
    tools: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Execution:
    """One run to be made.

    Attributes:
        engine: runs it.
        seed, row: of its random numbers.
        observer: sees it.
        more_follow: whether the program will be run again.
        usage: takes its numbers.
    """

    engine: Engine
    seed: int
    row: int
    observer: Observer
    more_follow: bool
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True)
class Start:
    """How a run begins.

    Attributes:
        row: of the data, for random numbers.
        observer: sees it.
        more_follow: whether the program will be run again.
    """

    row: int = 0
    observer: Observer = field(default_factory=SilentObserver)
    more_follow: bool = False


class AnyProgram(ABC, Generic[P, R]):
    """A program, whether it is waited for or awaited.

    Args:
        name: what messages call it.
        how: it is run.
    """

    def __init__(self, name: str, how: How) -> None:
        self.__name__ = name
        self._how = how

    @abstractmethod
    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Arguments as `begin` takes them.

        Raises:
            ArgumentsError, TypeError: they don't fit.
        """

    @abstractmethod
    def begin(self, bound: Callable[[], Any], host: Host, start: Start) -> Running:
        """Begin a run; it ends with an `Outcome`.

        Args:
            bound: gives the arguments; what it raises ends the run.
            host: where its functions run.
            start: how it begins.
        """

    @abstractmethod
    def called_by(self, caller: Speech, /, *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Begin it as a part of another program's run."""

    @property
    def reader(self) -> Callable[[Value], Any] | None:
        """Makes values of its variables objects of Python; None where it has no variables."""
        return None

    @abstractmethod
    def _with(self, how: How) -> Self:
        """The same program, run otherwise."""

    def __repr__(self) -> str:
        return f"<program {self.__name__}{signature(cast(Callable[..., Any], self))}>"

    def using(
        self,
        *,
        engine: Engine | None = None,
        seed: int | None = None,
        timeout: float | None = None,
        tools: Mapping[str, Any] | None = None,
    ) -> Self:
        """The same program, run otherwise; what is not said stays as it is.

        Args:
            engine: on which model.
            seed: of its random numbers.
            timeout: seconds a run may take before it ends with `Timeout`.
            tools: functions by name, for the tools that a file declares.
        """
        said: dict[str, Any] = {"engine": engine, "seed": seed, "timeout": timeout, "tools": tools}
        return self._with(replace(self._how, **{name: value for name, value in said.items() if value is not None}))

    @property
    def engine(self) -> Engine:
        """What it runs on."""
        return self._how.engine or default_engine()

    def recorder(self, tell: Callable[[Event], None]) -> Recorder:
        """An observer that makes events of what happens in a run."""
        return Recorder(tell, self.reader)

    def _execution(self, start: Start) -> Execution:
        engine = self.engine
        seed = engine.seed if self._how.seed is None else self._how.seed
        return Execution(engine, seed, start.row, start.observer, start.more_follow)


@dataclass(frozen=True, eq=False)
class Row:
    """A row under way."""

    running: Running

    @property
    def is_done(self) -> bool:
        return self.running.ended.is_done

    def when_done(self, wake: Callable[[], None]) -> None:
        self.running.ended.when_done(wake)


def rows_at_once(
    program: AnyProgram[..., Any], rows: Iterable[Mapping[str, Any]], host: Host, at_once: int, ordered: bool
) -> RowsAtOnce[Row]:
    """Rows of a program under way; see `Program.batch`."""

    def start(row: int, arguments: Mapping[str, Any], more_follow: bool) -> Row:
        return Row(program.begin(lambda: program.bound((), arguments), host, Start(row, more_follow=more_follow)))

    return RowsAtOnce(enumerate(rows), start, at_once, ordered)


def result_of(ended: Row | ArgumentsError, on_error: str) -> Any:
    """What a row returned, or what went wrong with it where that may be returned."""
    assert isinstance(ended, Row), "arguments are bound in the run"
    try:
        return ended.running.ended.value().result
    except Exception as error:
        if on_error == "return":
            return error
        raise
