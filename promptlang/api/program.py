"""Programs that are called as functions, and waited for."""

from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Generator, Iterable, Mapping
from contextvars import copy_context
from dataclasses import replace
from typing import Any, Literal, ParamSpec, TypeVar, overload

from promptlang.api import async_running
from promptlang.api.any_program import AnyProgram, Execution, How, Outcome, Start, result_of, rows_at_once
from promptlang.api.async_stream import AsyncStream
from promptlang.api.events import Event
from promptlang.api.hub import Hub, current_strand
from promptlang.api.strands import Host, Running
from promptlang.api.stream import Stream
from promptlang.session.rows import ROWS_AT_ONCE

P = ParamSpec("P")
R = TypeVar("R")


class Program(AnyProgram[P, R]):
    """A program that is called as a function."""

    @abstractmethod
    def _execute(self, bound: Any, execution: Execution) -> Outcome[R]:
        """Run it, in a strand."""

    def begin(self, bound: Callable[[], Any], host: Host, start: Start) -> Running:
        def run() -> Outcome[R]:
            execution = self._execution(start)
            try:
                return self._execute(bound(), execution)
            finally:
                execution.engine.count(execution.usage)

        return host.for_functions.start(run, copy_context(), self._how.timeout)

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
        bound = self.bound(args, kwargs)
        hub = Hub(self.engine.lead())
        trace: list[Event] = []
        outcome: Outcome[R] = hub.finish(self.begin(lambda: bound, hub, Start(observer=self.recorder(trace.append))))
        return replace(outcome, trace=tuple(trace))

    def stream(self, *args: P.args, **kwargs: P.kwargs) -> Stream[R]:
        """Run the program once, and see it happen: `with program.stream(...) as run: for event in run: ...`."""
        return Stream(self, self.bound(args, kwargs))

    # Many rows -----------------------------------------------------------------------------------------------

    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[True] = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise"] = "raise",
    ) -> Generator[R, None, None]: ...
    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[True] = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["return"],
    ) -> Generator[R | Exception, None, None]: ...
    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[False],
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise"] = "raise",
    ) -> Generator[tuple[int, R], None, None]: ...
    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[False],
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["return"],
    ) -> Generator[tuple[int, R | Exception], None, None]: ...
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: bool = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise", "return"] = "raise",
    ) -> Generator[Any, None, None]:
        """Run the program once a row, many at once.

        Args:
            rows: its arguments by name; read as there is room for them.
            ordered: give results in the order of the rows; else as they end, each with its row's index.
            at_once: the most rows that run together.
            on_error: `raise` what goes wrong with a row, which ends all; or `return` it in the result's place.

        Yields:
            What each row returned. Whoever stops reading ends the rows that are under way.
        """
        hub = Hub(self.engine.lead())
        at_once_rows = rows_at_once(self, rows, hub, at_once, ordered)
        try:
            for row, ended in at_once_rows.ended(hub.until):
                result = result_of(ended, on_error)
                yield result if ordered else (row, result)
        finally:
            for under_way in at_once_rows.under_way:
                hub.end(under_way.running)

    # In an event loop ----------------------------------------------------------------------------------------

    async def acall(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """As calling it, in an event loop, which goes on while the model answers."""
        return (await async_running.run(self, args, kwargs)).result

    async def arun(self, *args: P.args, **kwargs: P.kwargs) -> Outcome[R]:
        """As `run`, in an event loop."""
        return await async_running.run(self, args, kwargs)

    def astream(self, *args: P.args, **kwargs: P.kwargs) -> AsyncStream[R]:
        """As `stream`, in an event loop."""
        return AsyncStream(self, self.bound(args, kwargs))

    @overload
    def abatch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[True] = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise"] = "raise",
    ) -> AsyncGenerator[R, None]: ...
    @overload
    def abatch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[True] = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["return"],
    ) -> AsyncGenerator[R | Exception, None]: ...
    @overload
    def abatch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[False],
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise"] = "raise",
    ) -> AsyncGenerator[tuple[int, R], None]: ...
    @overload
    def abatch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[False],
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["return"],
    ) -> AsyncGenerator[tuple[int, R | Exception], None]: ...
    def abatch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: bool = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise", "return"] = "raise",
    ) -> AsyncGenerator[Any, None]:
        """As `batch`, in an event loop."""
        return async_running.batch(self, rows, ordered=ordered, at_once=at_once, on_error=on_error)
