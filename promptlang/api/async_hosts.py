"""Hosts on the event loop of asyncio: strands for plain functions, tasks for coroutines."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, copy_context
from time import monotonic
from typing import Any, TypeVar

from promptlang.api.errors import Cancelled, Timeout
from promptlang.api.hub import Strand, StrandHost
from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.tasks import Future

T = TypeVar("T")


class _Desk:
    """Takes work for the event loop that is running, and says when all of it is done.

    Args:
        loop: whose models wait a moment while there is work.
    """

    def __init__(self, loop: EngineLoop) -> None:
        self.events = asyncio.get_running_loop()
        self._loop = loop
        self._handed = 0

    def hand(self, work: Callable[[], None]) -> None:
        """Have something done in the event loop, from any thread; what comes after its end is dropped."""
        self._loop.guests.busy(self)
        with suppress(RuntimeError):
            self.events.call_soon_threadsafe(self._do, work)

    def _do(self, work: Callable[[], None]) -> None:
        self._handed += 1
        work()
        # What the work wakes runs in the next round of the event loop, and what that wakes in the one after.
        self.events.call_soon(self.events.call_soon, self._rest, self._handed)

    def _rest(self, handed: int) -> None:
        if handed == self._handed:
            self._loop.guests.idle(self)

    async def wait(self, future: Future[T]) -> T:
        """Wait for what the engine's loop, or a strand, gives."""
        waiter = self.events.create_future()
        future.when_done(lambda: self.hand(lambda: None if waiter.done() else waiter.set_result(None)))
        await waiter
        return future.value()


class AsyncHub(StrandHost):
    """Runs strands on the thread of the event loop: what they do between two statements, nothing else does there.

    Args:
        loop: moves what they wait for.
    """

    def __init__(self, loop: EngineLoop) -> None:
        super().__init__(loop)
        self.desk = _Desk(loop)

    def hand(self, work: Callable[[], None]) -> None:
        self.desk.hand(work)

    def end_at(self, strand: Strand[Any], time: float) -> None:
        self.desk.events.call_later(max(0.0, time - monotonic()), strand.end)

    @property
    def for_coroutines(self) -> "TaskHost":
        return TaskHost(self.loop)


class RunningTask:
    """A coroutine under way, as a task of asyncio.

    Attributes:
        ended: its value or its error, once it is over.
    """

    def __init__(self, seconds: float | None) -> None:
        self.ended: Future[Any] = Future()
        self._ends = None if seconds is None else monotonic() + seconds
        self._task: asyncio.Task[None] | None = None
        self._is_ending = False

    def begin(self, coroutine: Coroutine[Any, Any, Any], events: asyncio.AbstractEventLoop, context: Context) -> None:
        """Run it; in the event loop."""
        self._task = events.create_task(self._run(coroutine), context=context)
        if self._ends is not None:
            events.call_later(max(0.0, self._ends - monotonic()), self.end)

    def end(self) -> None:
        """Cancel it; in the event loop."""
        self._is_ending = True
        if self._task is not None:
            self._task.cancel()

    async def _run(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        try:
            value = await coroutine
        except asyncio.CancelledError as cancelled:
            is_late = self._ends is not None and monotonic() >= self._ends
            if self._is_ending and is_late:
                self.ended.reject(Timeout("the run took longer than it was given"))
            else:
                self.ended.reject(Cancelled() if self._is_ending else cancelled)
        except BaseException as error:
            self.ended.reject(error)
        else:
            self.ended.resolve(value)


class TaskHost:
    """Runs coroutine functions as tasks of the event loop.

    Args:
        loop: moves what they wait for.
    """

    def __init__(self, loop: EngineLoop) -> None:
        self.loop = loop
        self.desk = _Desk(loop)

    def hand(self, work: Callable[[], None]) -> None:
        self.desk.hand(work)

    def start(
        self, function: Callable[[], Any], context: Context | None = None, timeout: float | None = None
    ) -> RunningTask:
        """Begin a coroutine function, from any thread; see `StrandHost.start`."""
        running = RunningTask(timeout)
        given = copy_context() if context is None else context
        self.hand(lambda: running.begin(function(), self.desk.events, given))
        return running

    @property
    def for_functions(self) -> AsyncHub:
        return AsyncHub(self.loop)

    @property
    def for_coroutines(self) -> "TaskHost":
        return self
