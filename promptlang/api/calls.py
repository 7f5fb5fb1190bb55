"""What runs beside a prompt: programs that it calls, and functions in threads."""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import ParamSpec, Protocol, TypeVar

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
    """Call a function in a thread, with the caller's context variables. A race of branches doesn't wait for it."""
    call = partial(copy_context().run, function, *args, **kwargs)
    threads, frame = statements.live.machine.loop.threads, statements.live.frame

    async def called() -> R:
        running = threads.run(call)
        frame.is_away = True
        try:
            return await running
        except TaskCancelled:
            threads.abandon(running)
            raise
        except Exception as error:
            raise Carried(error) from error
        finally:
            frame.is_away = False

    return Pending(statements.live.spawn(called()), lambda value: value)
