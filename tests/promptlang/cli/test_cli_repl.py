"""A script on stdin: what it prints, and how it ends."""

import io
from collections.abc import Callable

import pytest

Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def script(command: Command, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], tuple[int, str, str]]:
    def run(text: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.stdin", io.StringIO(text))
        return command("repl")

    return run


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("log 1\n", 0, ""),
        ("x = nope\n", 2, "nope"),
        (":nope\n", 2, "no command"),
        ("x = 1\ny = 2 // (x - 1)\n", 1, "<stdin>:2:"),
    ],
)
def test_how_a_script_ends(script: Callable[[str], tuple[int, str, str]], text: str, code: int, message: str) -> None:
    ended, out, error = script(text + 'log "behind"\n')
    assert ended == code
    assert message in error
    assert ("behind" in out) is (code == 0)


def test_a_script_prints_answers_and_no_numbers(script: Callable[[str], tuple[int, str, str]]) -> None:
    code, out, error = script('user: "Hello"\nassistant: x = gen(int in 7..7)\nlog x + 1\n')
    assert (code, out, error) == (0, "7\nlog: 8\n", "")
