"""`promptlang stubs`: what type checkers are told of a file, in a `.pyi` beside it; and whether that is still right.

The text of stubs is worked out by `api/stubs.py`, which is imported only where there is a stub.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from promptlang.cli.errors import CommandError, ExitCode
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.session.program_file import ProgramFile


def stub_path(file: ProgramFile) -> Path:
    """Where the stub of a file lies: `triage_pl.pyi` beside `triage.pl`, for `triage.py` may lie there, too."""
    path = Path(file.name)
    return path.with_name(re.sub(r"\W", "_", path.name) + ".pyi")


def write_stubs(files: Sequence[ProgramFile]) -> ExitCode:
    """Write the stubs of files that have no errors, and print where they are.

    Raises:
        CommandError: a file has no programs, or its stub can't be written. Where something else lies in a stub's place,
            none has been written.
    """
    from promptlang.api.stubs import is_stub, stub

    for file in files:
        if not file.names:
            raise CommandError(f"{file.name} has no program to write a stub of")
        text = _text(stub_path(file))
        if text is not None and not is_stub(file, text):
            raise CommandError(f"{stub_path(file)} is no stub of {file.name}; move it, or rename one of them")
    for file in files:
        path = stub_path(file)
        try:
            path.write_text(stub(file), encoding="utf-8")
        except OSError as error:
            raise CommandError(f"{path} can't be written: {error.strerror}") from error
        print(path)
    return ExitCode.DONE


def stale_stubs(file: ProgramFile) -> list[Diagnostic]:
    """A warning where the stub beside a file says what the file no longer says."""
    path = stub_path(file)
    text = _text(path)
    if text is None or not file.is_ok or not file.names:
        return []
    from promptlang.api.stubs import is_current, is_stub

    if not is_stub(file, text) or is_current(file, text):
        return []
    return [faults.stale_stub(file.checked.programs[file.names[0]].declaration.name_span, path.name)]


def _text(path: Path) -> str | None:
    """The text of a stub; None where there is none."""
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        raise CommandError(f"{path} can't be read: {error.strerror}") from error
