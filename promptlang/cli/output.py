"""Where a run's words go: results to stdout, all else to stderr."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import TextIO

from rich.console import Console

from promptlang.cli.report import numbers
from promptlang.runtime.usage import Usage


@dataclass(frozen=True)
class Output:
    """The two streams of a command.

    Attributes:
        started: when the command began, on the clock of `perf_counter`.
        console: for people; on stderr.
        stdout: for results alone; what tools and libraries print goes to stderr.
    """

    started: float = field(default_factory=perf_counter)
    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    stdout: TextIO = field(default_factory=lambda: sys.stdout)

    @property
    def is_terminal(self) -> bool:
        """Whether people see results and all else in one place."""
        return self.console.is_terminal and self.stdout.isatty()

    @contextmanager
    def status(self, text: str) -> Iterator[Callable[[str], None]]:
        """Say on a terminal what is going on; gives a function that says it anew."""
        if not self.console.is_terminal:
            yield lambda message: None
            return
        with self.console.status(text) as status:
            yield lambda message: status.update(message)

    def close(self, usage: Usage) -> None:
        """Write the line of numbers."""
        print(numbers(usage, perf_counter() - self.started), file=sys.stderr)
