"""Fixtures for all tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from promptlang.runtime.threads import spin_briefly

spin_briefly()


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Writes a program's text to a file; gives its path."""

    def write(text: str) -> str:
        file = tmp_path / "program.pl"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write
