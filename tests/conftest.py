"""Fixtures for all tests."""

from collections.abc import Callable
from pathlib import Path

import pytest


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Writes a program's text to a file; gives its path."""

    def write(text: str) -> str:
        file = tmp_path / "program.pl"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write
