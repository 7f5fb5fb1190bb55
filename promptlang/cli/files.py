"""What commands ask of files before they read or write them."""

import os
import sys
from collections.abc import Iterable

from promptlang.cli.errors import CommandError


def refuse_special(file: str, role: str, fix: str) -> None:
    """Refuse pipes and devices, which may never end, or never begin.

    Args:
        file: its path.
        role: what it was given as.
        fix: what to do.

    Raises:
        CommandError: it is there, and is neither a file nor a folder.
    """
    if os.path.exists(file) and not os.path.isfile(file) and not os.path.isdir(file):
        raise CommandError(f"{role}: {file} is a pipe or a device; {fix}")


def read_stdin() -> bytes:
    """All of stdin.

    Raises:
        CommandError: it is closed, or can't be read.
    """
    if sys.stdin is None:
        raise CommandError("stdin is closed; send it what `-` stands for")
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise CommandError(f"stdin can't be read: {error.strerror}") from error


def refuse_overwriting(out: str, read: Iterable[tuple[str, str]]) -> None:
    """Refuse to write over what is read, under whatever name.

    Args:
        out: what `--out` will write.
        read: what the run reads: the role of each file, and its path.

    Raises:
        CommandError: it is one of them.
    """
    for role, file in read:
        if _is_same(out, file):
            raise CommandError(f"--out would overwrite the file of {role}; name another")


def _is_same(one: str, other: str) -> bool:
    if os.path.exists(one) and os.path.exists(other):
        return os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)
