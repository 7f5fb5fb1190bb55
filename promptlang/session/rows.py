"""Rows of data, run many at once."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from threading import Lock
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

from promptlang.interpreter.run import Outcome, RunError
from promptlang.interpreter.tasks import Future, Task
from promptlang.runtime.usage import Usage
from promptlang.values.conversion import ArgumentsError

ROWS_AT_ONCE = 32
ROUNDS_AHEAD = 8
"""Of rows at once: how many may have begun behind one that was not given out yet."""

NumberedRow: TypeAlias = tuple[int, Mapping[str, Any]]


class Run(Protocol):
    """A run under way."""

    @property
    def is_done(self) -> bool:
        """Whether it has ended."""

    def when_done(self, wake: Callable[[], None], /) -> None:
        """Call `wake` once it has ended."""


R = TypeVar("R", bound=Run)


@dataclass(frozen=True, eq=False)
class Started:
    """A run under way.

    Attributes:
        task: ends with its outcome.
        usage: its numbers so far.
    """

    task: Task[Outcome]
    usage: Usage

    @property
    def is_done(self) -> bool:
        return self.task.is_done

    def when_done(self, wake: Callable[[], None]) -> None:
        self.task.when_done(wake)


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


class RowsAtOnce(Generic[R]):
    """Keeps rows running: whenever one ends, the next begins, unless too many wait to be given out behind a slow one.

    Args:
        rows: read one ahead of what has begun, and only by whoever reads the ends: they may wait for other runs.
        start: begins a row, given its number, its arguments, and whether more follow.
        at_once: the most that run together.
        ordered: whether they are given out in their order, or as they end.
    """

    def __init__(
        self,
        rows: Iterator[NumberedRow],
        start: Callable[[int, Mapping[str, Any], bool], R],
        at_once: int,
        ordered: bool = True,
    ) -> None:
        self._rows = rows
        self._start = start
        self._at_once = at_once
        self._ordered = ordered
        self._has_read = False
        self._next: NumberedRow | None = None
        self._error: Exception | None = None
        self._begun: deque[tuple[int, R | ArgumentsError]] = deque()
        self._room: Future[None] = Future()
        self._telling = Lock()

    def next_ended(self) -> tuple[int, R | ArgumentsError] | Future[None] | None:
        """The next row whose run has ended, or with what is wrong with its arguments; or what to wait for until there
        may be one; None where all were given out. What reading the rows raised comes behind those before it."""
        if not self._has_read:
            self._has_read = True
            self._read()
        self._fill()
        row = self._ended()
        if row is not None:
            self._begun.remove(row)
            self._fill()
            return row
        if self._begun:
            return self._room
        if self._error is not None:
            raise self._error
        return None

    def ended(self, wait: Callable[[Future[None]], None]) -> Iterator[tuple[int, R | ArgumentsError]]:
        """The rows, as `next_ended` gives them.

        Args:
            wait: until something is there.
        """
        while (row := self.next_ended()) is not None:
            if isinstance(row, Future):
                wait(row)
            else:
                yield row

    @property
    def under_way(self) -> list[R]:
        """The runs that have not ended."""
        return [one for _, one in self._begun if not isinstance(one, ArgumentsError) and not one.is_done]

    def _ended(self) -> tuple[int, R | ArgumentsError] | None:
        """The row that is given out next, where it has ended."""
        for row in islice(self._begun, 1 if self._ordered else None):
            if isinstance(row[1], ArgumentsError) or row[1].is_done:
                return row
        return None

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
        started.when_done(self._tell)
        return True

    def _tell(self) -> None:
        """There is room again; more than one thread may know."""
        with self._telling:
            if not self._room.is_done:
                self._room.resolve(None)
