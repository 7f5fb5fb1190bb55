"""Rows of data, run many at once."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, TypeAlias

from promptlang.interpreter.run import Outcome, RunError
from promptlang.interpreter.tasks import Future, Task
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
        task: ends with its outcome.
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
        rows: read one ahead of what has begun, and only by whoever reads the ends: they may wait for other runs.
        start: begins a row, given its number, its arguments, and whether more follow.
        wait: until something is there.
        at_once: the most that run together.
    """

    def __init__(
        self,
        rows: Iterator[NumberedRow],
        start: Callable[[int, Mapping[str, Any], bool], Started],
        wait: Callable[[Future[None]], None],
        at_once: int,
    ) -> None:
        self._rows = rows
        self._start = start
        self._wait = wait
        self._at_once = at_once
        self._next: NumberedRow | None = None
        self._error: Exception | None = None
        self._begun: deque[tuple[int, Started | ArgumentsError]] = deque()
        self._room: Future[None] = Future()
        self._telling = Lock()

    def ended(self) -> Iterator[tuple[int, Started | ArgumentsError]]:
        """The rows, in order, each as soon as its run has ended, or with what is wrong with its arguments."""
        self._read()
        self._fill()
        while self._begun:
            while not self._is_first_done:
                self._wait(self._room)
                self._fill()
            first = self._begun.popleft()
            self._fill()
            yield first
        if self._error is not None:
            raise self._error

    @property
    def under_way(self) -> list[Started]:
        """The runs that have not ended."""
        return [one for _, one in self._begun if isinstance(one, Started) and not one.task.is_done]

    @property
    def _is_first_done(self) -> bool:
        _, first = self._begun[0]
        return isinstance(first, ArgumentsError) or first.task.is_done

    def _read(self) -> None:
        """Read the next row; an error is kept until the rows before it are given out."""
        try:
            self._next = next(self._rows, None)
        except Exception as error:
            self._next, self._error = None, error

    def _fill(self) -> None:
        """Begin rows while there is room for them."""
        self._room = Future()  # before counting: what ends from now on says that there is room again
        running = len(self.under_way)
        most = self._at_once * ROUNDS_AHEAD
        while self._next is not None and running < self._at_once and len(self._begun) < most:
            row, arguments = self._next
            self._read()
            running += self._begin(row, arguments)

    def _begin(self, row: int, arguments: Mapping[str, Any]) -> bool:
        """Begin a row; whether it runs."""
        try:
            started = self._start(row, arguments, self._next is not None)
        except ArgumentsError as error:
            self._begun.append((row, error))
            return False
        self._begun.append((row, started))
        started.task.when_done(self._tell)
        return True

    def _tell(self) -> None:
        """There is room again; more than one thread may know."""
        with self._telling:
            if not self._room.is_done:
                self._room.resolve(None)
