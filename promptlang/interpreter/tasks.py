"""Coroutines that wait for model answers, and the loop that runs them.

Not asyncio: between two model passes every coroutine must have run as far as it can, so that all requests of a
moment share one batch, and in an order that is the same every time.
"""

from collections import deque
from collections.abc import Callable, Coroutine, Generator
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class TaskCancelled(BaseException):
    """Thrown into a coroutine to end it; passes every `except Exception`."""


class Interrupted(RuntimeError):
    """What was under way when the thread that drove it was interrupted; it can't go on."""

    def __init__(self, interrupt: BaseException) -> None:
        super().__init__(f"interrupted ({type(interrupt).__name__}) by who drove it")
        self.__cause__ = interrupt


class Future(Generic[T]):
    """A value that will be there. One thread gives it; any thread may ask for it."""

    def __init__(self) -> None:
        self._value: T | None = None
        self._error: BaseException | None = None
        self._is_done = False
        self._waiting: deque[Callable[[], None]] = deque()

    @property
    def is_done(self) -> bool:
        return self._is_done

    @property
    def error(self) -> BaseException | None:
        return self._error

    def resolve(self, value: T) -> None:
        self._value = value
        self._finish()

    def reject(self, error: BaseException) -> None:
        self._error = error
        self._finish()

    def settle(self, work: Callable[[], T]) -> None:
        """Take what a function returns or raises; only the first time."""
        if self._is_done:
            return
        try:
            value = work()
        except Exception as error:
            self.reject(error)
        except BaseException as interrupt:
            self.reject(Interrupted(interrupt))
            raise
        else:
            self.resolve(value)

    def _finish(self) -> None:
        assert not self._is_done, "a future ends once"
        self._is_done = True
        self._wake()

    def _wake(self) -> None:
        """Tell all who wait, each once, whatever one of them raises."""
        try:
            while self._waiting:
                self._waiting.popleft()()
        finally:
            if self._waiting:
                self._wake()

    def when_done(self, wake: Callable[[], None]) -> None:
        """Call `wake` once the value is there (at once if it is)."""
        if self._is_done:
            wake()
            return
        self._waiting.append(wake)
        if self.is_done:  # another thread gave the value meanwhile, and may have seen nobody wait
            self._wake()

    def value(self) -> T:
        """The value; raises the error where there is one."""
        assert self._is_done
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def __await__(self) -> "Generator[Future[Any], None, T]":
        while not self._is_done:
            yield self
        return self.value()


class Task(Future[T]):
    """A running coroutine; its value is what the coroutine returns."""

    def __init__(self, loop: "Loop", coroutine: Coroutine[Any, None, T]) -> None:
        super().__init__()
        self._loop = loop
        self._coroutine = coroutine
        self._cancelling = False
        loop.soon(self)

    def cancel(self) -> None:
        """End the coroutine where it waits; its `finally` blocks run before this returns, unless it is the one that
        calls: then it ends where it waits next. Only while nothing else moves the loop; other threads post it."""
        if self._is_done or self._cancelling:
            return
        self._cancelling = True
        if self._loop.current is not self:
            self.advance()

    def advance(self) -> None:
        """Run the coroutine until it waits or ends; one that still waits for the same thing is none the worse."""
        if self._is_done:
            return
        before, self._loop.current = self._loop.current, self
        was_cancelling = self._cancelling
        try:
            resume = self._coroutine.send
            waiting_for = self._coroutine.throw(TaskCancelled()) if self._cancelling else resume(None)
        except StopIteration as end:
            self.resolve(end.value)
        except TaskCancelled as cancelled:
            self.reject(cancelled)
        except Exception as error:
            self.reject(error)
        except BaseException as interrupt:
            self.reject(Interrupted(interrupt))
            raise
        else:
            if self._cancelling and not was_cancelling:
                self._loop.soon(self)
            else:
                waiting_for.when_done(lambda: self._loop.soon(self))
        finally:
            self._loop.current = before


class Loop:
    """Runs tasks in turn, first come first served. One thread runs it at a time; any may spawn."""

    def __init__(self) -> None:
        self._ready: deque[Task[Any]] = deque()
        self.current: Task[Any] | None = None

    def spawn(self, coroutine: Coroutine[Any, None, T]) -> Task[T]:
        """Start a coroutine; it runs when its turn comes."""
        return Task(self, coroutine)

    def soon(self, task: Task[Any]) -> None:
        self._ready.append(task)

    def run_ready(self) -> None:
        """Run until every task waits for something from outside."""
        while self._ready:
            self._ready[0].advance()
            self._ready.popleft()  # only now: an interrupt loses no task

    def run_until(self, future: Future[Any], step: Callable[[], bool]) -> None:
        """Run until a future is done.

        Args:
            future: a task of this loop, or what such a one waits for.
            step: moves the outside world (one model pass); returns whether there was anything to move.

        Raises:
            RuntimeError: every task waits and there is nothing to wait for.
        """
        while True:
            self.run_ready()
            if future.is_done:
                return
            if not step():
                raise RuntimeError("every branch waits, and no model call is under way")
