"""Programs as functions: what a file's and a function's have in common."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextvars import copy_context
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Generic, Literal, ParamSpec, Self, TypeVar, overload

from promptlang.api.engine import Engine, default_engine
from promptlang.api.errors import ArgumentsError
from promptlang.api.hub import Hub, Strand, current_strand
from promptlang.api.speech import Pending, Speech
from promptlang.interpreter.observer import Observer, SilentObserver
from promptlang.interpreter.said import Message
from promptlang.runtime.usage import Usage
from promptlang.session.rows import ROWS_AT_ONCE, RowsAtOnce

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
    """

    result: R
    variables: Mapping[str, Any]
    messages: tuple[Message, ...]
    usage: Usage


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
    tools: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, eq=False)
class Execution:
    """One run to be made.

    Attributes:
        strand: waits for it.
        engine: runs it.
        seed, row: of its random numbers.
        observer: sees it.
        usage: takes its numbers.
        more_follow: whether the program will be run again.
    """

    strand: Strand[Any]
    engine: Engine
    seed: int
    row: int = 0
    observer: Observer = field(default_factory=SilentObserver)
    usage: Usage = field(default_factory=Usage)
    more_follow: bool = False


class Program(ABC, Generic[P, R]):
    """A program that is called as a function.

    Args:
        name: what messages call it.
        how: it is run.
    """

    def __init__(self, name: str, how: How) -> None:
        self.__name__ = name
        self._how = how

    # What a kind of program says of itself -----------------------------------------------------------------

    @abstractmethod
    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Arguments as `_execute` takes them.

        Raises:
            ArgumentsError, TypeError: they don't fit.
        """

    @abstractmethod
    def _execute(self, bound: Any, execution: Execution) -> Outcome[R]:
        """Run it, in a strand."""

    @abstractmethod
    def called_by(self, caller: Speech, /, *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Begin it as a part of another program's run."""

    @abstractmethod
    def _with(self, how: How) -> Self:
        """The same program, run otherwise."""

    # Running ---------------------------------------------------------------------------------------------------

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

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the program returns. In a function of another program, it is part of that run."""
        strand = current_strand()
        if strand is not None and strand.prompt is not None and self._how == How():
            result: R = strand.prompt.call(self, *args, **kwargs).result()
            return result
        return self.run(*args, **kwargs).result

    def run(self, *args: P.args, **kwargs: P.kwargs) -> Outcome[R]:
        """Run the program once.

        Raises:
            ArgumentsError, TypeError: the arguments don't fit; no model is loaded.
            RunError: it failed.
            Timeout: it took longer than it was given.
        """
        bound = self._bound(args, kwargs)
        hub = Hub(self._engine.lead())
        return hub.run(lambda: self._in_strand(bound), self._how.timeout)

    @property
    def _engine(self) -> Engine:
        return self._how.engine or default_engine()

    def _in_strand(
        self, bound: Any, row: int = 0, observer: Observer | None = None, more_follow: bool = False
    ) -> Outcome[R]:
        strand = current_strand()
        assert strand is not None
        engine = self._engine
        seed = engine.seed if self._how.seed is None else self._how.seed
        execution = Execution(strand, engine, seed, row, observer or SilentObserver(), more_follow=more_follow)
        try:
            return self._execute(bound, execution)
        finally:
            engine.count(execution.usage)

    # Many rows -----------------------------------------------------------------------------------------------

    @overload
    def batch(
        self, rows: Iterable[Mapping[str, Any]], *, at_once: int = ROWS_AT_ONCE, on_error: Literal["raise"] = "raise"
    ) -> Iterator[R]: ...
    @overload
    def batch(
        self, rows: Iterable[Mapping[str, Any]], *, at_once: int = ROWS_AT_ONCE, on_error: Literal["return"]
    ) -> Iterator[R | Exception]: ...
    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[False],
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise"] = "raise",
    ) -> Iterator[tuple[int, R]]: ...
    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[False],
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["return"],
    ) -> Iterator[tuple[int, R | Exception]]: ...
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: bool = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise", "return"] = "raise",
    ) -> Iterator[Any]:
        """Run the program once a row, many at once.

        Args:
            rows: its arguments by name; read as there is room for them.
            ordered: give results in the order of the rows; else as they end, each with its row's index.
            at_once: the most rows that run together.
            on_error: `raise` what goes wrong with a row, which ends all; or `return` it in the result's place.

        Yields:
            What each row returned. Whoever stops reading ends the rows that are under way.
        """
        hub = Hub(self._engine.lead())

        def start(row: int, arguments: Mapping[str, Any], more_follow: bool) -> "_Row[Outcome[R]]":
            def work() -> Outcome[R]:
                return self._in_strand(self._bound((), arguments), row, more_follow=more_follow)

            return _Row(hub.start(work, copy_context(), self._how.timeout))

        rows_at_once = RowsAtOnce(enumerate(rows), start, hub.until, at_once, ordered)
        try:
            for row, ended in rows_at_once.ended():
                result = _result(ended, on_error)
                yield result if ordered else (row, result)
        finally:
            for under_way in rows_at_once.under_way:
                hub.end(under_way.strand)


@dataclass(frozen=True, eq=False)
class _Row(Generic[R]):
    """A row under way."""

    strand: Strand[R]

    @property
    def is_done(self) -> bool:
        return self.strand.ended.is_done

    def when_done(self, wake: Any) -> None:
        self.strand.ended.when_done(wake)


def _result(ended: "_Row[Outcome[R]] | ArgumentsError", on_error: str) -> R | Exception:
    """What a row returned, or what went wrong with it where that may be returned."""
    assert isinstance(ended, _Row)
    try:
        return ended.strand.ended.value().result
    except Exception as error:
        if on_error == "return":
            return error
        raise
