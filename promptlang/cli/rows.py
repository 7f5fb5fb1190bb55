"""Rows of data in, rows of results out."""

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from promptlang.cli.arguments import parse_json, typed
from promptlang.cli.errors import CommandError
from promptlang.cli.report import Fault, line_of
from promptlang.compiler.graph import Graph
from promptlang.values.conversion import ArgumentsError, bind_arguments
from promptlang.values.values import Value


@dataclass(frozen=True)
class Row:
    """One row of data.

    Attributes:
        number: from 0.
        arguments: of the program, validated; None where the row is broken.
        fault: why it is.
    """

    number: int
    arguments: dict[str, Value] | None = None
    fault: Fault | None = None


def read_rows(source: str, graph: Graph, common: Mapping[str, Any]) -> list[Row]:
    """All rows of a data file.

    Args:
        source: a `.csv` file (its header names the arguments), a file of JSON lines, or `-` for JSON lines on stdin.
        graph: the program that takes them.
        common: arguments of every row; a row's own win.

    Raises:
        CommandError: the file can't be read.
    """
    reader = _csv_rows if source.endswith(".csv") else _json_rows
    name = "<stdin>" if source == "-" else source
    rows = []
    for number, (line, read) in enumerate(reader(_bytes(source), name, graph)):
        fault = read if isinstance(read, Fault) else None
        arguments = None
        if not isinstance(read, Fault):
            try:
                arguments = bind_arguments(graph, {**common, **read})
            except ArgumentsError as error:
                fault = Fault(str(error), name, line, 1)
        rows.append(Row(number, arguments, fault))
    return rows


def _bytes(source: str) -> bytes:
    if source == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(source).read_bytes()
    except OSError as error:
        raise CommandError(f"--data: {source} can't be read: {error.strerror}") from error


_Read = Iterator[tuple[int, dict[str, Any] | Fault]]
"""A line's number (from 1), with its arguments or with what is wrong with it."""


def _json_rows(data: bytes, name: str, graph: Graph) -> _Read:
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


def _csv_rows(data: bytes, name: str, graph: Graph) -> _Read:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise CommandError(f"--data: {name} is not UTF-8; save it as UTF-8") from error
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = next(reader, [])
        if len(set(header)) < len(header):
            raise CommandError(f"--data: {name} names a column twice")
        for cells in reader:
            if cells:
                yield reader.line_num, _csv_row(header, cells, graph, name, reader.line_num)
    except csv.Error as error:
        raise CommandError(f"--data: {name}:{reader.line_num}: {error}") from error


def _csv_row(header: list[str], cells: list[str], graph: Graph, name: str, line: int) -> dict[str, Any] | Fault:
    if len(cells) != len(header):
        return Fault(f"the row has {len(cells)} cells, the header {len(header)}", name, line, 1)
    try:
        return typed(graph, dict(zip(header, cells, strict=True)))
    except ArgumentsError as error:
        return Fault(str(error), name, line, 1)


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
