"""Functions that run in threads beside the tasks of a loop."""

from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from promptlang.interpreter.tasks import Future, TaskCancelled

T = TypeVar("T")

MOST_THREADS = 32


class Threads:
    """Runs functions beside the loop, and hands their ends over when the loop asks for them.

    The threads are daemons: a function that never ends does not keep the process alive.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._ends: SimpleQueue[tuple[Future[Any], Callable[[], None]]] = SimpleQueue()
        self._abandoned: set[Future[Any]] = set()
        self._started = 0
        self._running = 0

    def run(self, function: Callable[[], T]) -> Future[T]:
        """Begin a function in a thread; its value is there after a `deliver`."""
        future: Future[T] = Future()
        self._calls.put(lambda: self._ends.put((future, self._ended(function, future))))
        self._running += 1
        if self._started < min(self._running, MOST_THREADS):
            self._started += 1
            Thread(target=self._work, daemon=True, name=f"promptlang-tool-{self._started}").start()
        return future

    def abandon(self, future: Future[Any]) -> None:
        """Nobody waits for a function any more: if it has not begun, it never does."""
        self._abandoned.add(future)

    def deliver(self, *, wait: bool) -> bool:
        """Resolve the futures of the functions that have ended.

        Args:
            wait: until one has ended, if any runs.

        Returns:
            Whether any had.
        """
        before = self._running
        if wait and self._running:
            self._deliver_next()
        while not self._ends.empty():
            self._deliver_next()
        return self._running < before

    def _deliver_next(self) -> None:
        future, resolve = self._ends.get()
        self._running -= 1
        self._abandoned.discard(future)
        resolve()

    def _work(self) -> None:
        while True:
            self._calls.get()()

    def _ended(self, function: Callable[[], T], future: Future[T]) -> Callable[[], None]:
        """Run a function; gives what tells its future, for the loop's own thread to call."""
        if future in self._abandoned:
            return lambda: future.reject(TaskCancelled())
        try:
            value = function()
        except BaseException as error:
            failure = error
            return lambda: future.reject(failure)
        return lambda: future.resolve(value)
