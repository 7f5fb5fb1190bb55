"""The results of rows: JSON lines, in a file or on stdout."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from promptlang.cli.data import Row
from promptlang.cli.errors import CommandError, OutputError
from promptlang.cli.files import refuse_special
from promptlang.cli.report import Heading, line_of


@dataclass(frozen=True)
class ResultsFile:
    """A file that takes the results of rows.

    Attributes:
        path: where it is.
        rows: how many results it holds and keeps: those of the first rows.
        size: of these, in bytes; what lies behind them was never finished.
    """

    path: Path
    rows: int = 0
    size: int = 0

    @classmethod
    def resumed(cls, path: Path, heading: Heading, rows: Sequence[Row]) -> "ResultsFile":
        """A file to go on with; it is only read.

        Args:
            path: where it is, if it is there.
            heading: of the reports that will follow.
            rows: all of the data. Those behind the ones that were done may be others by now.

        Raises:
            CommandError: it can't be read, or does not hold the results of the first rows of the same run.
        """
        if not os.path.exists(path):
            return cls(path)
        refuse_special(str(path), "--resume", "name a file with --out")
        try:
            data = path.read_bytes()
        except OSError as error:
            raise CommandError(f"--out: {path} can't be read: {error.strerror}") from error
        *lines, rest = data.split(b"\n")
        digests = []
        for number, line in enumerate(lines):
            result = _result(line)
            if not _is_of(result, number, heading):
                raise _not_ours(path, number, heading)
            digests.append(result.get("data"))
        if not _may_become(rest, len(lines), heading):
            raise _not_ours(path, len(lines), heading)
        if len(lines) > len(rows):
            raise CommandError(
                f"--resume: {path} holds {len(lines)} results, and the data has {len(rows)} rows; name another"
            )
        for row, digest in zip(rows, digests, strict=False):
            if digest != row.digest:
                raise _other_data(path, row)
        return cls(path, len(lines), len(data) - len(rest))

    def refuse_unwritable(self) -> None:
        """Find out whether it can be written before anything else is done; it stays as it is.

        Raises:
            CommandError: it can't.
        """
        is_there = os.path.exists(self.path)
        if is_there and not os.path.isfile(self.path):
            return  # to open a pipe is to have been its writer
        try:
            self.path.open("a").close()
            if not is_there:
                self.path.resolve().unlink()  # where it is a link, what it made
        except OSError as error:
            raise _unwritable(self.path, error) from error

    @contextmanager
    def opened(self) -> Iterator[TextIO]:
        """The file, to be written to; what it does not keep is gone.

        Raises:
            CommandError: it can't be written.
        """
        try:
            stream = self.path.open("a" if self.rows else "w", encoding="utf-8", newline="\n")
            if self.rows:
                stream.truncate(self.size)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        try:
            yield stream
        finally:
            with suppress(OSError):  # every row was flushed; where that failed, it was said
                stream.close()


def _unwritable(path: Path, error: OSError) -> CommandError:
    return CommandError(f"--out: {path} can't be written: {error.strerror}")


def _result(line: bytes) -> dict[str, Any]:
    """What a line says of a row; nothing where it is no result."""
    try:
        result = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return result if isinstance(result, dict) else {}


def _is_of(result: Mapping[str, Any], number: int, heading: Heading) -> bool:
    """Whether a result is that of a row by its number, with that heading."""
    wanted = {"row": number, "program": heading.program, "model": heading.model, "seed": heading.seed}
    if isinstance(result.get("row"), bool) or not wanted.items() <= result.items():
        return False
    return line_of(result.get("template_options", {})) == line_of(dict(heading.template_options))


def _may_become(rest: bytes, number: int, heading: Heading) -> bool:
    """Whether an unfinished line is the beginning of the result of that row, or nothing."""
    head = line_of({"row": number, "program": heading.program}).removesuffix("}").encode()
    return rest.startswith(head) or head.startswith(rest)


def _not_ours(path: Path, number: int, heading: Heading) -> CommandError:
    options = [f"--template-option {name}={line_of(value)}" for name, value in heading.template_options.items()]
    said = ", ".join([heading.program, f"--model {heading.model}", f"--seed {heading.seed}", *options])
    return CommandError(
        f"--resume: line {number + 1} of {path} is no result of row {number} of this run ({said}); name another "
        "--out file"
    )


def _other_data(path: Path, row: Row) -> CommandError:
    return CommandError(
        f"--resume: line {row.number + 1} of {path} is the result of other arguments than {row.file}:{row.line} has "
        "now, with --arg and --args; give those of the first run, or name another --out file"
    )


class RowWriter:
    """Writes results as JSON lines, each out of our hands at once.

    Args:
        stream: takes them.
        name: what messages call it.
    """

    def __init__(self, stream: TextIO, name: str) -> None:
        self._stream = stream
        self._name = name
        self._written = 0

    def write(self, row: Mapping[str, Any]) -> None:
        """Write the result of a row.

        Raises:
            OutputError: there is no room for it.
            BrokenPipeError: whoever read has gone.
        """
        try:
            self._stream.write(line_of(row) + "\n")
            self._stream.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise OutputError(
                f"{self._name} can't be written: {error.strerror}; {self._written} rows are written"
            ) from error
        self._written += 1
