"""Programs in an event loop of asyncio: one run, and many rows."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Mapping
from dataclasses import replace
from typing import Any, ParamSpec, TypeVar

from promptlang.api.any_program import AnyProgram, Outcome, Start, result_of, rows_at_once
from promptlang.api.async_hosts import TaskHost
from promptlang.api.events import Event
from promptlang.interpreter.tasks import Future

P = ParamSpec("P")
R = TypeVar("R")


async def run(program: AnyProgram[P, R], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Outcome[R]:
    """Run a program once, in the event loop.

    Raises:
        ArgumentsError, TypeError: the arguments don't fit; no model is loaded.
        RunError: it failed.
        Timeout: it took longer than it was given.
    """
    bound = program.bound(args, kwargs)
    host = TaskHost(await asyncio.to_thread(program.engine.lead))
    trace: list[Event] = []
    running = program.begin(lambda: bound, host, Start(observer=program.recorder(trace.append)))
    try:
        outcome: Outcome[R] = await host.desk.wait(running.ended)
    except asyncio.CancelledError:
        running.end()
        raise
    return replace(outcome, trace=tuple(trace))


async def batch(
    program: AnyProgram[P, R], rows: Iterable[Mapping[str, Any]], *, ordered: bool, at_once: int, on_error: str
) -> AsyncGenerator[Any, None]:
    """Run a program once a row, in the event loop; see `Program.batch`."""
    host = TaskHost(await asyncio.to_thread(program.engine.lead))
    rows_under_way = rows_at_once(program, rows, host, at_once, ordered)
    try:
        while (row := rows_under_way.next_ended()) is not None:
            if isinstance(row, Future):
                await host.desk.wait(row)
                continue
            result = result_of(row[1], on_error)
            yield result if ordered else (row[0], result)
    finally:
        for under_way in rows_under_way.under_way:
            under_way.running.end()
