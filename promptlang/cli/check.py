"""`promptlang check`, and the check that comes before every run."""

import sys
from collections.abc import Sequence
from pathlib import Path

from promptlang.checker import Checked
from promptlang.checker import check as check_bundle
from promptlang.cli.errors import CommandError, ExitCode
from promptlang.diagnostics import Diagnostic, print_all, render_all, to_json
from promptlang.loader import LoadError, load


def check(files: Sequence[str], style: str) -> ExitCode:
    """Report what is wrong with programs, on stdout.

    Args:
        files: their paths.
        style: `text` or `json`.
    """
    found = {file: checked(file).diagnostics for file in files}
    everything = [diagnostic for diagnostics in found.values() for diagnostic in diagnostics]
    if style == "json":
        print(to_json(everything))
    else:
        for file, diagnostics in found.items():
            _report(file, diagnostics)
    return ExitCode.WRONG if any(diagnostic.is_error for diagnostic in everything) else ExitCode.DONE


def checked(file: str) -> Checked:
    """A file and what it imports, checked.

    Raises:
        CommandError: it can't be read.
    """
    try:
        return check_bundle(load(Path(file)))
    except LoadError as error:
        raise CommandError(str(error)) from error


def show(diagnostics: Sequence[Diagnostic]) -> None:
    """Write diagnostics to stderr, in colour where it has any."""
    _write(diagnostics, to_stderr=True)


def _report(file: str, diagnostics: Sequence[Diagnostic]) -> None:
    if diagnostics:
        _write(diagnostics, to_stderr=False)
    else:
        print(f"{file}: no errors")


def _write(diagnostics: Sequence[Diagnostic], *, to_stderr: bool) -> None:
    stream = sys.stderr if to_stderr else sys.stdout
    if not stream.isatty():
        stream.write(render_all(diagnostics))
        return
    from rich.console import Console

    print_all(diagnostics, Console(file=stream))
