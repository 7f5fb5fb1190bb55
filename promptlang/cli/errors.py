"""How commands end."""

from enum import IntEnum


class ExitCode(IntEnum):
    """What the shell is told."""

    DONE = 0
    FAILED = 1
    WRONG = 2
    INTERRUPTED = 130


class CommandError(Exception):
    """The command line, or a file it names, is wrong; `str()` says what, and what would put it right."""

    code = ExitCode.WRONG


class OutputError(CommandError):
    """What was done can't be written."""

    code = ExitCode.FAILED
