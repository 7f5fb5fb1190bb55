"""Rows of data for a program, from a file or from stdin."""

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any

from promptlang.cli.arguments import parse_json
from promptlang.cli.errors import CommandError
from promptlang.cli.files import read_stdin, refuse_special
from promptlang.cli.report import Fault
from promptlang.session.program import Program
from promptlang.values.conversion import ArgumentsError

LARGEST_CELL = 2**31 - 1
"""Characters of a CSV cell: what a long on any system holds."""


@dataclass(frozen=True)
class Row:
    """One row of data.

    Attributes:
        number: from 0.
        file: where it stands, as messages say it.
        line: of the file, from 1.
        read: arguments by name, not validated; or what is wrong with the row.
    """

    number: int
    file: str
    line: int
    read: Mapping[str, Any] | Fault

    def fault(self, message: str) -> Fault:
        """What is wrong with the row as a whole."""
        return Fault(message, self.file, self.line, 1)

    @property
    def digest(self) -> str:
        """16 hexadecimal digits that differ where what was read does, wherever it stands."""
        read = self.read.message if isinstance(self.read, Fault) else self.read
        return blake2b(json.dumps(read, sort_keys=True).encode(), digest_size=8).hexdigest()


def read_rows(source: str, program: Program, common: Mapping[str, Any]) -> list[Row]:
    """All rows of a data file.

    Args:
        source: a `.csv` file (its header names the arguments), a file of JSON lines, or `-` for JSON lines on stdin.
        program: takes them.
        common: arguments of every row; a row's own win.

    Raises:
        CommandError: the file can't be read.
    """
    reader = _csv_rows if source.lower().endswith(".csv") else _json_rows
    name = "<stdin>" if source == "-" else source
    return [
        Row(number, name, line, read if isinstance(read, Fault) else {**common, **read})
        for number, (line, read) in enumerate(reader(_bytes(source), name, program))
    ]


def _bytes(source: str) -> bytes:
    if source == "-":
        return read_stdin()
    refuse_special(source, "--data", "send its lines to stdin, and give --data -")
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise CommandError(f"--data: {source} can't be read: {error.strerror}") from error


_Read = Iterator[tuple[int, dict[str, Any] | Fault]]
"""A line's number (from 1), with its arguments or with what is wrong with it."""


def _json_rows(data: bytes, name: str, program: Program) -> _Read:
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), start=1):
        if line.strip():
            yield number, _json_row(line, name, number)


def _json_row(line: bytes, name: str, number: int) -> dict[str, Any] | Fault:
    try:
        row = parse_json(line.decode())
    except json.JSONDecodeError as error:
        return Fault(f"the row is not JSON: {error.msg}", name, number, error.colno)
    except UnicodeDecodeError as error:
        return Fault("the row is not UTF-8", name, number, error.start + 1)
    except ValueError as error:
        return Fault(f"the row is not JSON: {error}", name, number, 1)
    if not isinstance(row, dict):
        return Fault("the row is not a JSON object with the arguments by name", name, number, 1)
    return row


def _csv_rows(data: bytes, name: str, program: Program) -> _Read:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"--data: {name} is not UTF-8; save it as UTF-8") from error
    records = _records(list(io.StringIO(text, newline="")))
    line, header = next(records, (1, []))
    if isinstance(header, csv.Error):
        raise CommandError(f"--data: {name}:{line}: {header}")
    if len(set(header)) < len(header):
        raise CommandError(f"--data: {name} names a column twice")
    for line, cells in records:
        if isinstance(cells, csv.Error):
            yield line, Fault(f"the row is not CSV: {cells}", name, line, 1)
        else:
            yield line, _csv_row(header, cells, program, name, line)


def _records(lines: Sequence[str]) -> Iterator[tuple[int, list[str] | csv.Error]]:
    """The cells of each record that is not empty, or what is wrong with it, and the line (from 1) where it begins.

    Behind a broken record, what is next is read as if it began on the next line: a quote that is never closed takes
    its own line alone.
    """
    csv.field_size_limit(LARGEST_CELL)
    start = 0
    while start < len(lines):
        first = start
        reader = csv.reader(islice(lines, first, None), strict=True)
        try:
            for cells in reader:
                if cells:
                    yield start + 1, cells
                start = first + reader.line_num
        except csv.Error as error:
            yield start + 1, error
            start += 1


def _csv_row(header: list[str], cells: list[str], program: Program, name: str, line: int) -> dict[str, Any] | Fault:
    if len(cells) != len(header):
        return Fault(f"the row has {len(cells)} cells, the header {len(header)}", name, line, 1)
    try:
        return program.typed(dict(zip(header, cells, strict=True)))
    except ArgumentsError as error:
        return Fault(str(error), name, line, 1)
