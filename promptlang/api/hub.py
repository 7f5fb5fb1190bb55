"""Strands: the functions of programs, side by side on one thread; each waits without its thread. A hub runs them.

    loop's thread ── hand(work) ──▶ inbox ──▶ hub's thread: resumes the strand that waited
                  ◀── statements of runs ──── strands, one after another, until all of them wait

A strand is a greenlet: plain functions can wait in it, whatever they were called by, and each has a copy of its
starter's context variables. While any strand is at work, the loop's models wait a moment (`Guests`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextvars import Context, copy_context
from operator import itemgetter
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import Any, Generic, TypeVar

from greenlet import getcurrent, greenlet

from promptlang.api.errors import Cancelled, Timeout, UsageError
from promptlang.api.strands import Host, Running
from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.tasks import Future

T = TypeVar("T")


class Strand(Generic[T]):
    """One function under way.

    Args:
        hub: runs it.
        function: what it does.
        context: its context variables; a copy.
        ends: by the clock `monotonic`, when it has to end.

    Attributes:
        ended: its value or its error, once it is over; given on the hub's thread.
        prompt: the prompt that its statements extend, for programs that it calls.
    """

    def __init__(self, hub: "StrandHost", function: Callable[[], T], context: Context, ends: float | None) -> None:
        self.hub = hub
        self.ended: Future[T] = Future()
        self.ends = ends
        self.prompt: Any = None
        self._function = function
        self._greenlet = _Greenlet(self)
        self._greenlet.gr_context = context
        self._waits = 0
        self._is_ending = False

    def run(self) -> None:
        """What its greenlet does."""
        try:
            if self._is_ending:
                raise Cancelled
            value = self._function()
        except Cancelled as cancelled:
            self.ended.reject(Timeout("the run took longer than it was given") if self.is_late else cancelled)
        except BaseException as error:
            self.ended.reject(error)
        else:
            self.ended.resolve(value)

    @property
    def is_late(self) -> bool:
        """Whether it should have ended."""
        return self.ends is not None and monotonic() >= self.ends

    def begin(self) -> None:
        """Run it until it waits or ends; on the hub's thread."""
        self._switch(None)

    def end(self) -> None:
        """Throw `Cancelled` into it where it waits; on the hub's thread, from outside of it."""
        self._is_ending = True
        if self._waits and not self.ended.is_done:
            self._switch(Cancelled())

    def wait(self, future: Future[T]) -> T:
        """Wait in it, until a future is done.

        Raises:
            Cancelled: it has to end.
        """
        if self._is_ending:
            raise Cancelled
        self._waits += 1
        turn = self._waits
        future.when_done(lambda: self.hub.hand(lambda: self._resume(turn)))
        self.hub.park(self)
        return future.value()

    def _resume(self, turn: int) -> None:
        if turn == self._waits and not self.ended.is_done:
            self._switch(None)

    def _switch(self, error: BaseException | None) -> None:
        self._waits += 1  # whatever else would have resumed it is too late
        self.hub.switch_to(self._greenlet, error)


class _Greenlet(greenlet):
    """The greenlet of a strand."""

    def __init__(self, strand: Strand[Any]) -> None:
        super().__init__(strand.run)
        self.strand = strand


def current_strand() -> Strand[Any] | None:
    """The strand that this code runs in."""
    here = getcurrent()
    return here.strand if isinstance(here, _Greenlet) else None


class StrandHost(ABC):
    """What runs strands, on a thread of its own choice.

    Args:
        loop: moves what they wait for, in another thread.
    """

    def __init__(self, loop: EngineLoop) -> None:
        self.loop = loop
        self._outside: greenlet | None = None

    @abstractmethod
    def hand(self, work: Callable[[], None]) -> None:
        """Have something done on the host's thread, outside of all strands; from any thread."""

    @abstractmethod
    def end_at(self, strand: Strand[Any], time: float) -> None:
        """Have a strand end at a time of the clock `monotonic`, unless it is over."""

    def start(
        self, function: Callable[[], T], context: Context | None = None, timeout: float | None = None
    ) -> Strand[T]:
        """Begin a function in a strand of its own, from any thread; it runs when the host's thread comes to it.

        Args:
            function: what it does.
            context: its context variables; a copy of the caller's by default.
            timeout: seconds after which it has to end, with a `Timeout`.
        """
        ends = None if timeout is None else monotonic() + timeout
        strand = Strand(self, function, copy_context() if context is None else context, ends)
        if ends is not None:
            self.end_at(strand, ends)
        self.hand(strand.begin)
        return strand

    @property
    def for_functions(self) -> "StrandHost":
        return self

    @property
    def for_coroutines(self) -> Host:
        raise UsageError("a plain function can't run an async one; make the caller an async program, too")

    def switch_to(self, strand: greenlet, error: BaseException | None) -> None:
        """Run a strand until it waits or ends."""
        self.loop.guests.heard(self)
        self._outside = strand.parent = getcurrent()
        if error is None:
            strand.switch()
        else:
            strand.throw(error)

    def park(self, strand: Strand[Any]) -> None:
        """Leave the current strand until it is resumed.

        Raises:
            UsageError: this is not that strand.
        """
        if current_strand() is not strand or self._outside is None:
            raise UsageError("a prompt belongs to the function that it was given to; use it there")
        self._outside.switch()


class Hub(StrandHost):
    """Runs strands on the thread that calls `until`."""

    def __init__(self, loop: EngineLoop) -> None:
        super().__init__(loop)
        self._inbox: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._handing = Lock()
        self._is_running = False
        self._timed: dict[Strand[Any], float] = {}

    def hand(self, work: Callable[[], None]) -> None:
        with self._handing:
            if self._is_running:
                self.loop.guests.busy(self)
            self._inbox.put(work)

    def end_at(self, strand: Strand[Any], time: float) -> None:
        self._timed[strand] = time
        strand.ended.when_done(lambda: self._over(strand))

    def _over(self, strand: Strand[Any]) -> None:
        self._timed.pop(strand, None)

    def finish(self, running: Running) -> Any:
        """Run strands until one has ended; gives its value."""
        try:
            self.until(running.ended)
        except BaseException:
            self.end(running)
            raise
        return running.ended.value()

    def until(self, future: Future[Any]) -> None:
        """Run strands until a future is done, which a strand gives, or the loop."""
        future.when_done(lambda: self.hand(_nothing))
        self._is_running = True
        try:
            while not future.is_done:
                self._next()()
        finally:
            self._is_running = False
            self.loop.guests.idle(self)

    def end(self, running: Running) -> None:
        """Throw `Cancelled` into a strand, and let it unwind."""
        self.hand(running.end)
        self.until(running.ended)

    def _next(self) -> Callable[[], None]:
        """The next work; the loop goes on without the hub while there is none."""
        with self._handing:
            try:
                return self._inbox.get_nowait()
            except Empty:
                self.loop.guests.idle(self)
        late, ends = min(self._timed.items(), key=itemgetter(1), default=(None, None))
        try:
            return self._inbox.get(timeout=None if ends is None else max(0.0, ends - monotonic()))
        except Empty:
            assert late is not None
            del self._timed[late]
            return late.end


def _nothing() -> None:
    """Work that only wakes a hub."""
