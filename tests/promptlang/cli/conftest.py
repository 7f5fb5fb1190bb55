"""Commands in this process, on the tiny random model."""

from collections.abc import Callable

import pytest
from tiny_command import load_tiny

import promptlang.session.opening as opening
from promptlang.cli.app import execute


@pytest.fixture(autouse=True)
def tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "load", load_tiny)


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs a command: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        code = execute(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run
