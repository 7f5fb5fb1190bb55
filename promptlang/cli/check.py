"""`promptlang check`, and the check that comes before every run."""

import sys
from collections.abc import Mapping, Sequence

from promptlang.cli.errors import CommandError, ExitCode
from promptlang.cli.files import refuse_special
from promptlang.cli.stubs import stale_stubs
from promptlang.diagnostics.rendering import Diagnostic, print_all, render_all, to_json
from promptlang.session.program_file import ProgramFile
from promptlang.syntax.loader import LoadError


def check(files: Sequence[str], style: str) -> ExitCode:
    """Report what is wrong with programs, on stdout.

    Args:
        files: their paths.
        style: `text` or `json`.
    """
    found = {file: checked(file) for file in files}
    everything = [diagnostic for program in found.values() for diagnostic in diagnostics_of(program)]
    if style == "json":
        print(to_json(everything))
    else:
        for file, program in found.items():
            _report(file, diagnostics_of(program))
    return _code(found)


def check_cost(files: Sequence[str], style: str, rows: int, pairs: Sequence[str]) -> ExitCode:
    """Report what programs will cost, on stdout; where one is wrong, report that instead.

    Args:
        files: their paths.
        style: `text` or `json`.
        rows: how often each program runs.
        pairs: the `NAME=VALUE` of each `--arg`.
    """
    found = {file: checked(file) for file in files}
    if _code(found) != ExitCode.DONE:
        return check(files, style)
    from promptlang.cli.cost import as_json, estimates, print_table

    costs = estimates(found, rows, pairs)
    if style == "json":
        print(as_json(costs))
        return ExitCode.DONE
    for file, inside in costs.items():
        diagnostics = diagnostics_of(found[file])
        if diagnostics:
            show(diagnostics)
        for name, estimate in inside.items():
            print_table(file, name, estimate)
    return ExitCode.DONE


def _code(found: Mapping[str, ProgramFile]) -> ExitCode:
    return ExitCode.DONE if all(program.is_ok for program in found.values()) else ExitCode.WRONG


def diagnostics_of(file: ProgramFile) -> list[Diagnostic]:
    """What is wrong with a file, and with the stub beside it."""
    return [*file.diagnostics, *stale_stubs(file)]


def checked(file: str) -> ProgramFile:
    """A file and what it imports, checked.

    Raises:
        CommandError: it can't be read.
    """
    refuse_special(file, "the program", "give a file")
    try:
        return ProgramFile.load(file)
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
