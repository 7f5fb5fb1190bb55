"""What runs beside a prompt: programs that it calls, and functions in threads."""

from asyncio import iscoroutinefunction
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

from promptlang.api.errors import UsageError
from promptlang.api.speech import Pending, Speech
from promptlang.api.statements import Statements
from promptlang.api.strands import Carried
from promptlang.interpreter.tasks import TaskCancelled

P = ParamSpec("P")
R = TypeVar("R")


class Callee(Protocol[P, R]):
    """A program that prompts can call."""

    def called_by(self, caller: Speech, /, *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        """Begin it as a part of the caller's run."""


def on_thread(statements: Statements, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
    """Call a function in a thread, with the caller's context variables.

    Raises:
        UsageError: it is a coroutine function.
    """
    if iscoroutinefunction(function):
        raise UsageError("a tool is a plain function, which runs in a thread; await a coroutine function itself")
    call = partial(copy_context().run, function, *args, **kwargs)
    threads = statements.live.machine.loop.threads

    async def called() -> R:
        running = threads.run(call)
        try:
            with statements.frame.away():
                return await running
        except TaskCancelled:
            threads.abandon(running)
            raise
        except Exception as error:
            raise Carried(error) from error

    return Pending(statements.live.spawn(called()), lambda value: value)
