"""The results of rows: JSON lines, in a file or on stdout."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

from promptlang.cli.errors import CommandError
from promptlang.cli.report import line_of


@contextmanager
def opened(out: Path, *, resumes: bool) -> Iterator[TextIO]:
    """A results file to write to.

    Args:
        out: its path.
        resumes: whether what it holds stays.

    Raises:
        CommandError: it can't be written.
    """
    try:
        stream = out.open("a" if resumes else "w", encoding="utf-8")
    except OSError as error:
        raise CommandError(f"--out: {out} can't be written: {error.strerror}") from error
    with stream:
        yield stream


class RowWriter:
    """Writes results as JSON lines, each out of our hands at once.

    Args:
        stream: takes them.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, row: Mapping[str, Any]) -> None:
        self._stream.write(line_of(row) + "\n")
        self._stream.flush()


def rows_in(out: Path) -> set[int]:
    """The numbers of the rows that a results file holds; cuts off a last line that was never finished.

    Raises:
        CommandError: it is no results file.
    """
    if not out.exists():
        return set()
    try:
        with out.open("rb+") as file:
            data = file.read()
            whole = data[: data.rfind(b"\n") + 1]
            file.truncate(len(whole))
    except OSError as error:
        raise CommandError(f"--out: {out} can't be read: {error.strerror}") from error
    return {_row_number(line, out, number) for number, line in enumerate(whole.splitlines(), start=1)}


def _row_number(line: bytes, out: Path, number: int) -> int:
    try:
        row = json.loads(line)["row"]
    except (ValueError, TypeError, KeyError):
        row = None
    if not isinstance(row, int):
        raise CommandError(f"--resume: line {number} of {out} is no row of results; name another --out file")
    return row
