"""Rows of data, run many at once."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from promptlang.interpreter.run import Outcome, RunError
from promptlang.interpreter.tasks import Task
from promptlang.runtime.usage import Usage
from promptlang.values.conversion import ArgumentsError

ROWS_AT_ONCE = 32
ROUNDS_AHEAD = 8
"""Of rows at once: how many may have begun behind one that was not given out yet."""

NumberedRow: TypeAlias = tuple[int, Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Started:
    """A run under way.

    Attributes:
        task: ends with its outcome; may be cancelled.
        usage: its numbers so far.
    """

    task: Task[Outcome]
    usage: Usage


@dataclass(frozen=True)
class Ended:
    """How a row ended.

    Attributes:
        row: its number.
        end: its outcome, or why there is none: what went wrong as it ran, or with its arguments.
        usage: its numbers.
    """

    row: int
    end: Outcome | RunError | ArgumentsError
    usage: Usage


class RowsAtOnce:
    """Keeps rows running: whenever one ends, the next begins, unless too many wait to be given out behind a slow one.

    Args:
        rows: read one ahead of what has begun.
        start: begins a row, given its number, its arguments, and whether more follow.
        wait: gives the end of a row.
        at_once: the most that run together.
    """

    def __init__(
        self,
        rows: Iterator[NumberedRow],
        start: Callable[[int, Mapping[str, Any], bool], Started],
        wait: Callable[[Started], Outcome],
        at_once: int,
    ) -> None:
        self._rows = rows
        self._start = start
        self._wait = wait
        self._at_once = at_once
        self._next: NumberedRow | None = None
        self._error: Exception | None = None
        self._begun: deque[tuple[int, Started | ArgumentsError]] = deque()
        self._running = 0

    def ends(self) -> Iterator[Ended]:
        """How each row ended, in order, as soon as it is known."""
        self._read()
        self._fill()
        try:
            while self._begun:
                row, started = self._begun[0]
                ended = self._ended(row, started)
                self._begun.popleft()
                self._fill()
                yield ended
        except GeneratorExit:
            self._cancel()
            raise
        if self._error is not None:
            raise self._error

    def _read(self) -> None:
        """Read the next row; an error is kept for its place, for a row that ends is no one to tell."""
        try:
            self._next = next(self._rows, None)
        except Exception as error:
            self._next, self._error = None, error

    def _fill(self) -> None:
        """Begin rows while there is room for them."""
        most = self._at_once * ROUNDS_AHEAD
        while self._next is not None and self._running < self._at_once and len(self._begun) < most:
            row, arguments = self._next
            self._read()
            self._begin(row, arguments)

    def _begin(self, row: int, arguments: Mapping[str, Any]) -> None:
        try:
            started = self._start(row, arguments, self._next is not None)
        except ArgumentsError as error:
            self._begun.append((row, error))
            return
        self._begun.append((row, started))
        self._running += 1
        started.task.when_done(self._make_room)

    def _make_room(self) -> None:
        self._running -= 1
        self._fill()

    def _ended(self, row: int, started: Started | ArgumentsError) -> Ended:
        if isinstance(started, ArgumentsError):
            return Ended(row, started, Usage())
        try:
            return Ended(row, self._wait(started), started.usage)
        except RunError as error:
            return Ended(row, error, started.usage)

    def _cancel(self) -> None:
        """End the runs that are under way."""
        self._next = None
        for _, started in self._begun:
            if isinstance(started, Started):
                started.task.cancel()
