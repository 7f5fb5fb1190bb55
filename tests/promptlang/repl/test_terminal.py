"""The REPL on a terminal: keys in, screens out."""

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pexpect
import pyte
import pytest
from places import ROOT

pytestmark = pytest.mark.slow


class Terminal:
    """The REPL on the tiny model, and the screen that a person sees."""

    def __init__(self, columns: int, home: Path) -> None:
        self._screen = pyte.Screen(columns, 40)
        self._stream = pyte.Stream(self._screen)
        self.process = pexpect.spawn(
            sys.executable,
            [str(ROOT / "tests" / "helpers" / "tiny_command.py"), "repl"],
            dimensions=(40, columns),
            env={"HOME": str(home), "TERM": "xterm-256color", "PROMPT_TOOLKIT_NO_CPR": "1", "OMP_NUM_THREADS": "1"},
            encoding="utf-8",
            timeout=60,
        )
        self.until(lambda screen: screen[-1:] == [">"])

    def until(self, holds: Callable[[list[str]], bool]) -> list[str]:
        """The lines of the screen, once something holds for them."""
        while not holds(lines := [line.rstrip() for line in self._screen.display if line.strip()]):
            self._stream.feed(self.process.read_nonblocking(4096, timeout=60))
        return lines

    def type(self, keys: str) -> None:
        self.process.send(keys)

    def prompts_again(self, text: str) -> list[str]:
        """The screen, once it shows a text and then waits for the next statement."""
        return self.until(lambda screen: any(text in line for line in screen) and screen[-1] == ">")


@pytest.fixture(params=[80, 200])
def terminal(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(request.param, tmp_path)
    yield terminal
    terminal.process.close(force=True)


def test_an_answer_and_its_numbers(terminal: Terminal) -> None:
    terminal.type('user: "Hello"\rassistant: x = gen(int in 7..7)\r')
    terminal.type("assistant: y = gen(max_tokens=3)\r")
    screen = terminal.prompts_again("tokens computed")
    at = screen.index("> assistant: x = gen(int in 7..7)")
    assert screen[at + 1] == "7"


def test_an_error_is_marked_and_the_next_statement_runs(terminal: Terminal) -> None:
    terminal.type("x = nope\r")
    screen = terminal.prompts_again("nope")
    assert any("^" in line for line in screen)
    terminal.type("log 40 + 2\r")
    assert "log: 42" in terminal.prompts_again("log: 42")


def test_a_block_goes_on_until_an_empty_line(terminal: Terminal) -> None:
    terminal.type("for i in [1, 2]:\r")
    terminal.until(lambda screen: screen[-1] == ".")
    terminal.type("log i + 10\r\r")
    screen = terminal.prompts_again("log: 12")
    assert ".     log i + 10" in screen
    assert "log: 11" in screen


def test_a_paste_of_many_statements_runs_at_once(terminal: Terminal) -> None:
    terminal.type("\x1b[200~a = 1\nif a:\n    a = 5\nlog a + 30\n\x1b[201~\r")
    assert "log: 35" in terminal.prompts_again("log: 35")


def test_ctrl_c_stops_an_answer_and_takes_it_back(terminal: Terminal) -> None:
    terminal.type("x = 1\r")
    terminal.prompts_again("> x = 1")
    terminal.type("x = gen(max_tokens=1500, min_tokens=1500)\r")
    terminal.until(lambda screen: not screen[-1].startswith(">"))
    terminal.type("\x03")
    terminal.prompts_again("stopped")
    terminal.type(":vars\r")
    terminal.until(lambda screen: screen[-2:] == ["x = 1", ">"])


def test_ctrl_d_leaves(terminal: Terminal) -> None:
    terminal.type("\x04")
    terminal.process.expect(pexpect.EOF)
    terminal.process.close()
    assert terminal.process.exitstatus == 0
