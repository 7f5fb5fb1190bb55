"""A command's process ends at once, and loses nothing by that."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from places import HELPERS

Program = Callable[[str], str]

BEFORE = "import atexit, os, sys, threading, time\nfrom promptlang.cli import app\n"
"""What a script begins with that ends as a command does."""


def script(text: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """What comes of a script with a command in it."""
    return subprocess.run([sys.executable, "-c", BEFORE + text, *arguments], capture_output=True, text=True, timeout=60)


def ends_with(text: str, code: int = 0) -> str:
    """A script in which a command does something and ends with a code."""
    body = "".join(f"    {line}\n" for line in text.splitlines())
    return f"def execute(arguments, options):\n{body}    return {code}\napp.execute = execute\napp.main()\n"


def test_what_python_would_take_apart_stays(tmp_path: Path) -> None:
    left = "class Left:\n    def __del__(self):\n        print('taken apart', flush=True)\nleft = Left()\n"
    assert script(left + ends_with("pass")).stdout == ""
    assert script(left + ends_with("options.tools = 'tools.py'")).stdout == "taken apart\n"


@pytest.mark.parametrize("code", [0, 1, 2, 130])
def test_the_exit_code_is_the_commands(code: int) -> None:
    done = script(ends_with("pass", code))
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_what_was_printed_is_whole() -> None:
    done = script(ends_with("for i in range(100_000): print(i)\nprint('end', end='', file=sys.stderr)"))
    assert done.stdout.split() == [str(number) for number in range(100_000)]
    assert done.stderr == "end"


def test_threads_and_exit_handlers_end_first() -> None:
    begun = "atexit.register(print, 'registered before')\n"
    slow = (
        "atexit.register(print, 'registered inside')\n"
        "threading.Thread(target=lambda: (time.sleep(0.2), print('thread'))).start()"
    )
    done = script(begun + ends_with(slow, 3))
    assert (done.returncode, done.stdout.splitlines()) == (3, ["thread", "registered inside", "registered before"])


def test_a_traceback_is_shown_and_its_code_kept() -> None:
    done = script(ends_with("raise LookupError('lost')"))
    assert done.returncode == 1
    assert "LookupError: lost" in done.stderr


@pytest.mark.slow
def test_files_that_tools_leave_open_are_whole(program: Program, tmp_path: Path) -> None:
    tools = tmp_path / "tools.py"
    tools.write_text("journal = open('journal', 'w')\ndef note(text):\n    journal.write(text)\n    return text\n")
    text = program('tool note(text: str) -> str\n\nprogram main():\n    x = note("kept")\n    return x\n')
    command = [sys.executable, str(HELPERS / "tiny_command.py"), "run", text, "--tools", str(tools)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=60)
    assert (done.returncode, done.stdout) == (0, '"kept"\n'), done.stderr
    assert (tmp_path / "journal").read_text() == "kept"


def test_the_time_that_is_shown_begins_with_the_process() -> None:
    """What the process did before the first line of the command counts."""
    busy = "import time\ntime.process_time = lambda: 1000.0\n"
    shown = ends_with("print(time.perf_counter() - options.started)")
    done = subprocess.run(
        [sys.executable, "-c", busy + BEFORE + shown], capture_output=True, text=True, check=True, timeout=60
    )
    assert float(done.stdout) > 1000
