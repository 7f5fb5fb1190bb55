"""A run as it happens, on a thread of its own."""

from collections.abc import Iterator
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Generic, TypeVar

from promptlang.api.any_program import AnyProgram, Outcome, Start
from promptlang.api.events import Done, Event
from promptlang.api.hub import Hub
from promptlang.api.strands import Running
from promptlang.interpreter.tasks import Future

R = TypeVar("R")


class Stream(Generic[R]):
    """A run under way; going through it gives its events, and `Done` last.

    Leaving the `with` block before the end cancels the run.

    Args:
        program: what runs.
        bound: its arguments.
    """

    def __init__(self, program: AnyProgram[..., R], bound: Any) -> None:
        self._program = program
        self._bound = bound
        self._events: SimpleQueue[Event | None] = SimpleQueue()
        self._ended: Future[Outcome[R]] = Future()
        self._has_ended = False
        self._under_way: tuple[Hub, Running, Thread] | None = None

    def __enter__(self) -> "Stream[R]":
        hub = Hub(self._program.engine.lead())
        observer = self._program.recorder(self._events.put)
        running = self._program.begin(lambda: self._bound, hub, Start(observer=observer))
        thread = Thread(
            target=copy_context().run, args=(self._run, hub, running), daemon=True, name="promptlang-stream"
        )
        self._under_way = hub, running, thread
        thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        assert self._under_way is not None
        self.cancel()
        self._under_way[2].join()

    def __iter__(self) -> Iterator[Event]:
        """The events, in order.

        Raises:
            RunError: it failed; so does whatever else its function raised.
        """
        while not self._has_ended:
            event = self._events.get()
            if event is None:
                self._has_ended = True
                event = Done((), self._ended.value().result)
            yield event

    @property
    def outcome(self) -> Outcome[R]:
        """How the run ended; waits for that. Raises as iterating does."""
        for _ in self:
            pass
        return self._ended.value()

    @property
    def result(self) -> R:
        """What the program returned; waits for that. Raises as iterating does."""
        return self.outcome.result

    def cancel(self) -> None:
        """End the run, from any thread; iterating raises `Cancelled` then."""
        if self._under_way is not None and not self._ended.is_done:
            hub, running, _ = self._under_way
            hub.hand(running.end)

    def _run(self, hub: Hub, running: Running) -> None:
        try:
            hub.until(running.ended)
            self._ended.resolve(running.ended.value())
        except BaseException as error:
            self._ended.reject(error)
        finally:
            self._events.put(None)
