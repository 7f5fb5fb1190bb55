"""Runs one program of a session: once, or many rows at once."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from promptlang.interpreter.observer import Observer
from promptlang.interpreter.run import Outcome
from promptlang.runtime.usage import Usage
from promptlang.session.program import Program
from promptlang.session.rows import ROWS_AT_ONCE, Ended, RowsAtOnce, Started

if TYPE_CHECKING:
    from promptlang.interpreter.interpreter import Interpreter


class Runner:
    """Runs a program; `Session.runner` makes one.

    Args:
        program: which.
        interpreter: of its graphs.
        total: takes the numbers of all runs, too.
    """

    def __init__(self, program: Program, interpreter: "Interpreter", total: Usage) -> None:
        self.program = program
        self._interpreter = interpreter
        self._total = total

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
        """
        try:
            return self._interpreter.wait(started.task)
        finally:
            self._total.add_tokens(started.usage)

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

        return RowsAtOnce(iter(rows), start, self.wait, at_once).ends()
