"""Programs of coroutine functions, which are awaited."""

from abc import abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextvars import copy_context
from typing import Any, Literal, ParamSpec, TypeVar, overload

from promptlang.api import async_running
from promptlang.api.any_program import AnyProgram, Execution, Outcome, Start
from promptlang.api.async_hosts import TaskHost
from promptlang.api.async_stream import AsyncStream
from promptlang.api.strands import Host, Running
from promptlang.session.rows import ROWS_AT_ONCE

P = ParamSpec("P")
R = TypeVar("R")


class AsyncProgram(AnyProgram[P, R]):
    """A program whose function is a coroutine function."""

    @abstractmethod
    async def _execute(self, bound: Any, execution: Execution, host: TaskHost) -> Outcome[R]:
        """Run it."""

    def begin(self, bound: Callable[[], Any], host: Host, start: Start) -> Running:
        tasks = host.for_coroutines
        assert isinstance(tasks, TaskHost)

        async def run() -> Outcome[R]:
            execution = self._execution(start)
            try:
                return await self._execute(bound(), execution, tasks)
            finally:
                execution.engine.count(execution.usage)

        return tasks.start(run, copy_context(), self._how.timeout)

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """What the program returns."""
        return (await async_running.run(self, args, kwargs)).result

    async def run(self, *args: P.args, **kwargs: P.kwargs) -> Outcome[R]:
        """Run the program once; see `Program.run`."""
        return await async_running.run(self, args, kwargs)

    def stream(self, *args: P.args, **kwargs: P.kwargs) -> AsyncStream[R]:
        """Run the program once, and see it happen: `async with ... as run: async for event in run: ...`."""
        return AsyncStream(self, self.bound(args, kwargs))

    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[True] = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise"] = "raise",
    ) -> AsyncGenerator[R, None]: ...
    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[True] = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["return"],
    ) -> AsyncGenerator[R | Exception, None]: ...
    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[False],
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise"] = "raise",
    ) -> AsyncGenerator[tuple[int, R], None]: ...
    @overload
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: Literal[False],
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["return"],
    ) -> AsyncGenerator[tuple[int, R | Exception], None]: ...
    def batch(
        self,
        rows: Iterable[Mapping[str, Any]],
        *,
        ordered: bool = True,
        at_once: int = ROWS_AT_ONCE,
        on_error: Literal["raise", "return"] = "raise",
    ) -> AsyncGenerator[Any, None]:
        """Run the program once a row, many at once; see `Program.batch`."""
        return async_running.batch(self, rows, ordered=ordered, at_once=at_once, on_error=on_error)
