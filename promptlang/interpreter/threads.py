"""Functions that run in threads beside the tasks of a loop."""

from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from threading import Event, Thread
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
        self._ends: deque[Callable[[], None]] = deque()
        self._news = Event()
        self._running: set[Future[Any]] = set()
        self._abandoned: set[Future[Any]] = set()
        self._started = 0

    def run(self, function: Callable[[], T]) -> Future[T]:
        """Begin a function in a thread; its value is there after a `deliver`."""
        future: Future[T] = Future()
        self._running.add(future)
        self._calls.put(lambda: self._ends.append(self._ended(function, future)))
        if self._started < min(len(self._running), MOST_THREADS):
            self._started += 1
            Thread(target=self._work, daemon=True, name=f"promptlang-tool-{self._started}").start()
        return future

    def abandon(self, future: Future[Any]) -> None:
        """Nobody waits for a function any more: if it has not begun, it never does."""
        self._abandoned.add(future)

    def wake(self) -> None:
        """Let a `deliver` that waits return, or else the next one; from any thread."""
        self._news.set()

    def rest(self, seconds: float | None = None) -> bool:
        """Wait until there is something to deliver, or `wake` is called; at most so long. Whether there is."""
        return self._news.wait(seconds)

    def deliver(self, *, wait: bool) -> bool:
        """Resolve the futures of the functions that have ended.

        Args:
            wait: until one has ended, if any runs that somebody waits for.

        Returns:
            Whether any had, or `wake` was called.
        """
        if wait and not self._ends and len(self._running) > len(self._abandoned):
            self._news.wait()
        if not self._ends and not self._news.is_set():
            return False
        self._news.clear()
        while self._ends:
            self._ends[0]()
            self._ends.popleft()  # only now: an interrupt loses no end
        return True

    def _work(self) -> None:
        while True:
            self._calls.get()()
            self._news.set()

    def _ended(self, function: Callable[[], T], future: Future[T]) -> Callable[[], None]:
        """Run a function; gives what tells its future, for the loop's own thread to call."""
        result: Future[T] = Future()
        if future in self._abandoned:
            result.reject(TaskCancelled())
        else:
            try:
                result.resolve(function())
            except BaseException as error:
                result.reject(error)
        return lambda: self._tell(future, result)

    def _tell(self, future: Future[T], result: Future[T]) -> None:
        self._running.discard(future)
        self._abandoned.discard(future)
        if future.is_done:
            return
        if result.error is None:
            future.resolve(result.value())
        else:
            future.reject(result.error)
