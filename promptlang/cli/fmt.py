"""`promptlang fmt`: programs in the one layout."""

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from promptlang.cli.check import show
from promptlang.cli.errors import CommandError, ExitCode
from promptlang.cli.files import read_stdin, refuse_special
from promptlang.diagnostics.source import Source
from promptlang.syntax.formatter.layout import FormatError, format_source
from promptlang.syntax.loader import LoadError, decode, read_text

STDIN = "-"
_LINE = re.compile(r"[^\n]*\n|[^\n]+")


@dataclass(frozen=True)
class _Program:
    """A program and its layout.

    Attributes:
        name: its path, or `-`.
        before: its text.
        after: its text laid out; None where it has errors.
    """

    name: str
    before: str
    after: str | None

    @property
    def changes(self) -> bool:
        return self.after is not None and self.after != self.before


def fmt(files: Sequence[str], *, writes: bool) -> ExitCode:
    """Lay programs out. Those with errors of syntax are reported on stderr and left as they are.

    Args:
        files: paths of programs, of folders of programs, or `-` for stdin.
        writes: whether to write the layout: a file in place, stdin's to stdout. Else what would change is shown.

    Raises:
        CommandError: a file can't be read or written. Where one can't be read, none has been written.
    """
    programs = [_laid_out(name) for name in dict.fromkeys(_names(files))]
    for program in programs:
        if writes:
            _write(program)
        else:
            _show_change(program)
    if files != [STDIN]:
        print(_summary(programs, writes=writes), file=sys.stderr)
    if any(program.after is None for program in programs):
        return ExitCode.WRONG
    return ExitCode.FAILED if not writes and any(program.changes for program in programs) else ExitCode.DONE


def _names(files: Sequence[str]) -> Iterator[str]:
    for file in files:
        if not os.path.isdir(file):
            yield file
            continue
        inside = [path for path in Path(file).rglob("*.pl") if not _is_hidden(path.relative_to(file))]
        if not inside:
            raise CommandError(f"there is no .pl file in the folder `{file}`")
        yield from map(str, sorted(inside))


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _laid_out(name: str) -> _Program:
    if name != STDIN:
        refuse_special(name, "the program", "give a file, or - and its text on stdin")
    try:
        text = decode(read_stdin(), "<stdin>") if name == STDIN else read_text(Path(name), name)
    except LoadError as error:
        raise CommandError(str(error)) from error
    try:
        return _Program(name, text, format_source(Source(text, "<stdin>" if name == STDIN else name)))
    except FormatError as error:
        show(error.diagnostics)
        return _Program(name, text, None)


def _write(program: _Program) -> None:
    if program.after is None:
        return
    if program.name == STDIN:
        sys.stdout.buffer.write(program.after.encode())
        return
    if program.changes:
        try:
            Path(program.name).write_bytes(program.after.encode())
        except OSError as error:
            raise CommandError(
                f"`{program.name}` can't be written: {(error.strerror or str(error)).lower()}"
            ) from error
        print(f"formatted {program.name}", file=sys.stderr)


def _show_change(program: _Program) -> None:
    """Print what formatting would change, as a diff."""
    if program.after is None:
        return
    before, after = (_LINE.findall(text) for text in (program.before, program.after))
    for line in unified_diff(before, after, program.name, f"{program.name} (formatted)", n=1):
        sys.stdout.write(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n")


def _summary(programs: Sequence[_Program], *, writes: bool) -> str:
    """How many files change, stay, and have errors."""
    changed = sum(program.changes for program in programs)
    wrong = sum(program.after is None for program in programs)
    same = len(programs) - changed - wrong
    parts = [
        (changed, "formatted" if writes else "to format"),
        (same, "as it should be" if same == 1 else "as they should be"),
        (wrong, "with errors, left alone"),
    ]
    return ", ".join(f"{_files(count)} {what}" for count, what in parts if count)


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
