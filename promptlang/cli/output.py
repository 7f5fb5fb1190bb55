"""Where a run's words go: results to stdout, all else to stderr."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass, field, replace
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

    started: float
    console: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    stdout: TextIO = field(default_factory=lambda: sys.stdout)

    @property
    def is_terminal(self) -> bool:
        """Whether people see results and all else in one place."""
        return self.console.is_terminal and self.stdout.isatty()

    @contextmanager
    def apart(self) -> Iterator["Output"]:
        """The streams for a command that runs what others wrote: meanwhile whatever else is printed goes to stderr,
        from subprocesses too, and from what writes past Python."""
        with redirect_stdout(sys.stderr), _own_descriptor(self.stdout) as stdout:
            yield replace(self, stdout=stdout)

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


@contextmanager
def _own_descriptor(stdout: TextIO) -> Iterator[TextIO]:
    """Stdout by a descriptor of its own, while 1 is that of stderr; where stdout is no descriptor, itself."""
    if not _is_descriptor(stdout, 1) or not _is_descriptor(sys.stderr, 2):
        yield stdout
        return
    stdout.flush()
    own = os.dup(1)
    os.dup2(2, 1)
    stream = os.fdopen(own, "w", encoding=stdout.encoding, errors=stdout.errors)
    try:
        yield stream
        stream.flush()
    finally:
        with suppress(OSError):  # what is left in it was printed by others
            stdout.flush()
        os.dup2(own, 1)
        with suppress(OSError):  # where a result could not be written, that was said
            stream.close()


def _is_descriptor(stream: TextIO | None, number: int) -> bool:
    """Whether what is written to a stream goes there."""
    try:
        return stream is not None and stream.fileno() == number
    except (AttributeError, OSError, ValueError):  # closed, or only an object that can be written to
        return False
