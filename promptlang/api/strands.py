"""How functions of users run beside one another: what a host of them offers, and how one stands for a branch."""

from collections.abc import Callable
from contextvars import Context
from typing import Any, Protocol, TypeVar

from promptlang.api.errors import Cancelled, EngineError, Pruned, RunError
from promptlang.interpreter import branches, run
from promptlang.interpreter.live import LiveRun, work
from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.tasks import Future, TaskCancelled

T = TypeVar("T")


class Running(Protocol):
    """A function under way.

    Attributes:
        ended: its value or its error, once it is over.
    """

    ended: Future[Any]

    def end(self) -> None:
        """Have it end where it waits; on the host's thread."""


class Host(Protocol):
    """Runs functions: in strands of a thread (`Hub`), or as tasks of asyncio (`TaskHost`).

    Attributes:
        loop: moves what they wait for.
    """

    loop: EngineLoop

    @property
    def for_functions(self) -> "Host":
        """What runs plain functions here."""

    @property
    def for_coroutines(self) -> "Host":
        """What runs coroutine functions here.

        Raises:
            UsageError: nothing does.
        """

    def start(
        self, function: Callable[[], Any], context: Context | None = None, timeout: float | None = None
    ) -> Running:
        """Begin a function, from any thread.

        Args:
            function: what it does; a coroutine function, for a host of those.
            context: its context variables; a copy of the caller's by default.
            timeout: seconds after which it has to end, with a `Timeout`.
        """

    def hand(self, work: Callable[[], None]) -> None:
        """Have something done on the host's thread, from any thread."""


class Carried(Exception):
    """An exception of a user's function, on its way through the loop to whoever waits for the function.

    Args:
        error: the exception; it is raised again with the lines it had.
    """

    def __init__(self, error: BaseException) -> None:
        super().__init__(repr(error))
        self.error = error
        self._lines = error.__traceback__

    def again(self) -> BaseException:
        """The exception, with the lines it had."""
        return self.error.with_traceback(self._lines)


async def beside(
    host: Host, live: LiveRun, function: Callable[[], T], context: Context, cancel: Callable[[], None]
) -> T:
    """Run a function of a user on its host; in the loop.

    Args:
        live: the run it belongs to.
        function: what it does.
        context: its context variables.
        cancel: ends the statement that it waits for; called when it has to end.
    """
    done: Future[T] = Future()
    running = host.start(function, context)

    def settle() -> None:
        live.machine.loop.spawn(work(lambda: done.settle(lambda: _value(running.ended))))

    running.ended.when_done(settle)
    try:
        return await done
    except TaskCancelled:
        cancel()
        host.hand(running.end)
        raise


def _value(ended: Future[T]) -> T:
    """What a function returned, in the loop's terms."""
    match ended.error:
        case None:
            return ended.value()
        case Pruned():
            raise branches.Pruned
        case error:
            raise Carried(error)


def translated(error: BaseException, loop: EngineLoop) -> BaseException:
    """What ended a statement of a run on a loop, in a user's terms."""
    match error:
        case Carried():
            return error.again()
        case run.RunError():
            return RunError.of(error)
        case branches.Pruned():
            return Pruned()
        case TaskCancelled() if loop.is_closed:
            return EngineError("the engine was closed while the program ran")
        case TaskCancelled():
            return Cancelled()
    return error
