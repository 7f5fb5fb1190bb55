"""A run as it happens, in an event loop."""

import asyncio
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Generic, TypeVar

from promptlang.api.any_program import AnyProgram, Outcome, Start
from promptlang.api.async_hosts import TaskHost
from promptlang.api.events import Done, Event
from promptlang.api.strands import Running

R = TypeVar("R")


class AsyncStream(Generic[R]):
    """A run under way; see `Stream`.

    Args:
        program: what runs.
        bound: its arguments.
    """

    def __init__(self, program: AnyProgram[..., R], bound: Any) -> None:
        self._program = program
        self._bound = bound
        self._events: asyncio.Queue[Event | None] = asyncio.Queue()
        self._has_ended = False
        self._running: Running | None = None

    async def __aenter__(self) -> "AsyncStream[R]":
        host = TaskHost(await asyncio.to_thread(self._program.engine.lead))
        events = asyncio.get_running_loop()

        def tell(event: Event | None) -> None:
            events.call_soon_threadsafe(self._events.put_nowait, event)

        self._running = self._program.begin(lambda: self._bound, host, Start(observer=self._program.recorder(tell)))
        self._running.ended.when_done(lambda: tell(None))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.cancel()

    async def __aiter__(self) -> AsyncIterator[Event]:
        """The events, in order; raises as the run does."""
        while not self._has_ended:
            event = await self._events.get()
            if event is None:
                self._has_ended = True
                event = Done((), self._outcome.result)
            yield event

    async def outcome(self) -> Outcome[R]:
        """How the run ended, once it has. Raises as iterating does."""
        async for _ in self:
            pass
        return self._outcome

    async def result(self) -> R:
        """What the program returned, once it has. Raises as iterating does."""
        return (await self.outcome()).result

    def cancel(self) -> None:
        """End the run, in its event loop."""
        if self._running is not None and not self._running.ended.is_done:
            self._running.end()

    @property
    def _outcome(self) -> Outcome[R]:
        assert self._running is not None
        outcome: Outcome[R] = self._running.ended.value()
        return outcome
