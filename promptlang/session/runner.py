"""Runs one program of a session: once, or many rows at once."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from promptlang.interpreter.observer import Observer
from promptlang.interpreter.run import Outcome, RunError
from promptlang.runtime.usage import Usage
from promptlang.session.program import Program
from promptlang.session.rows import ROWS_AT_ONCE, Ended, RowsAtOnce, Started
from promptlang.values.conversion import ArgumentsError

if TYPE_CHECKING:
    from promptlang.interpreter.interpreter import Interpreter
    from promptlang.interpreter.loop import EngineLoop


class Runner:
    """Runs a program; `Session.runner` makes one.

    Args:
        program: which.
        interpreter: of its graphs.
        loop: which the interpreter shares with others.
        count: takes the numbers of each run that was waited for.
    """

    def __init__(
        self, program: Program, interpreter: "Interpreter", loop: "EngineLoop", count: Callable[[Usage], None]
    ) -> None:
        self.program = program
        self._interpreter = interpreter
        self._loop = loop
        self._count = count

    def start(
        self,
        arguments: Mapping[str, Any],
        row: int = 0,
        observer: Observer | None = None,
        usage: Usage | None = None,
        more_follow: bool = False,
    ) -> Started:
        """Begin a run; it moves while something is waited for.

        Args:
            arguments: JSON data or values, by parameter name.
            row: of the data, for random numbers.
            observer: sees the run.
            usage: takes its numbers.
            more_follow: whether the program will be started again.

        Raises:
            ArgumentsError: an argument is missing, unknown, or not of its type.
        """
        bound = self.program.bind(arguments)
        usage = usage or Usage()
        return Started(self._interpreter.start(self.program.name, bound, row, observer, usage, more_follow), usage)

    def wait(self, started: Started) -> Outcome:
        """How a run ends; others go on beside it.

        Args:
            started: by this runner; waited for once.

        Raises:
            RunError: it failed.
            RunCancelled: it was cancelled.
        """
        try:
            return self._interpreter.wait(started.task)
        finally:
            self._count(started.usage)

    def cancel(self, started: Started) -> None:
        """End a run; its KV is free when the model pass under way is over."""
        self._interpreter.cancel(started.task)

    def run(self, arguments: Mapping[str, Any], observer: Observer | None = None) -> Outcome:
        """Run the program once.

        Args:
            arguments: JSON data or values, by parameter name.
            observer: sees the run.

        Raises:
            ArgumentsError: an argument is missing, unknown, or not of its type.
            RunError: the run failed.
        """
        return self.wait(self.start(arguments, observer=observer))

    def rows(
        self,
        rows: Iterable[tuple[int, Mapping[str, Any]]],
        at_once: int = ROWS_AT_ONCE,
        observer: Observer | None = None,
    ) -> Iterator[Ended]:
        """Run the program once a row, many at once; ends come in the order of the rows.

        Args:
            rows: the number of each, on which its random numbers depend, and its arguments. They are read as there
                is room for them, as `RowsAtOnce` says.
            at_once: the most that run together.
            observer: sees all runs.

        Yields:
            How each row ended, whether it failed or not. What `rows` itself raises comes behind the rows before it.
            Whoever stops reading ends the runs that are under way.
        """

        def start(number: int, arguments: Mapping[str, Any], more_follow: bool) -> Started:
            return self.start(arguments, number, observer, more_follow=more_follow)

        at = RowsAtOnce(iter(rows), start, at_once)
        try:
            for number, started in at.ended(self._loop.wait):
                yield self._end(number, started)
        except GeneratorExit:
            for started in at.under_way:
                self.cancel(started)
            raise

    def _end(self, row: int, started: Started | ArgumentsError) -> Ended:
        if isinstance(started, ArgumentsError):
            return Ended(row, started, Usage())
        try:
            return Ended(row, self.wait(started), started.usage)
        except RunError as error:
            return Ended(row, error, started.usage)
