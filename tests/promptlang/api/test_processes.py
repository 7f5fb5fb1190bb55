"""Programs and processes: how interpreters end, forks, and pickles."""

import pickle
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest
from places import HELPERS

import promptlang as pl

PREFACE = """
import os, pickle, signal, sys, threading, time
import promptlang as pl
import promptlang.session.opening as opening
from tiny_command import load_tiny

opening.load = load_tiny

@pl.program
def ask(p: pl.Prompt, question: str = "Why?") -> str:
    p.text(question)
    return p.gen(max_tokens=4)

@pl.program
def endless(p: pl.Prompt) -> None:
    p.text("a")
    while True:
        p.gen(max_tokens=50)
"""


@pl.program
def ask(p: pl.Prompt, question: str = "Why?") -> str:
    p.text(question)
    return p.gen(max_tokens=4)


def script(text: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a script on the tiny model; it must end by itself."""
    file = folder / "script.py"
    file.write_text(PREFACE + dedent(text), encoding="utf-8")
    return subprocess.run(
        [sys.executable, str(file)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={"PYTHONPATH": str(HELPERS), "PATH": "", "OMP_NUM_THREADS": "1", "HOME": str(folder)},
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        # The script ends while a thread still runs a program.
        ("threading.Thread(target=endless, daemon=True).start()\nask()\nprint('end')", 0, "end"),
        # A branch ends the script.
        (
            """
            @pl.program
            def leave(p: pl.Prompt) -> None:
                def branch(b: pl.Branch) -> None:
                    b.text("x")
                    b.gen(max_tokens=2)
                    if b.index == 1:
                        sys.exit(3)
                    while True:
                        b.gen(max_tokens=50)
                p.fork(3, branch)
            leave()
            """,
            3,
            "",
        ),
        # Ctrl-C, in a run and in a batch; the engine goes on.
        (
            """
            before = ask()
            for wait in (lambda: endless(), lambda: list(endless.batch([{}] * 3))):
                threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
                try:
                    wait()
                except KeyboardInterrupt:
                    print("interrupted")
            assert ask() == before
            pl.default_engine().close()
            """,
            0,
            "interrupted\ninterrupted",
        ),
        # A fork of a process whose model is loaded can't use it, and says so.
        (
            """
            before = ask()
            if os.fork() == 0:
                try:
                    ask()
                except pl.EngineError as error:
                    print("forked" in str(error))
                sys.exit(0)
            os.wait()
            assert ask() == before
            """,
            0,
            "True",
        ),
        # A fork of one whose model isn't loaded loads its own.
        ("if os.fork() == 0:\n    print(len(ask()) > 0)\n    sys.exit(0)\nos.wait()\nask()", 0, "True"),
        # Worker processes take programs and give outcomes.
        (
            """
            import multiprocessing
            def work(pair):
                opening.load = load_tiny
                program, question = pair
                return program.run(question)
            if __name__ == "__main__":
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    outcome, = pool.map(work, [(ask.using(seed=1), "Why?")])
                print(outcome.result == ask("Why?"), outcome.usage.calls)
            """,
            0,
            "True 1",
        ),
    ],
)
def test_a_script_ends_as_it_should(text: str, code: int, said: str, tmp_path: Path) -> None:
    run = script(text, tmp_path)
    assert (run.returncode, run.stdout.strip()) == (code, said), run.stderr


def test_programs_and_outcomes_pickle(tmp_path: Path) -> None:
    assert pickle.loads(pickle.dumps(ask)) is ask
    seeded = pickle.loads(pickle.dumps(ask.using(seed=3)))
    assert seeded("Why?") == ask.using(seed=3)("Why?")
    file = tmp_path / "count.pl"
    file.write_text('program count(n: int = 3) -> int:\n    "a"\n    x = gen(int in 0..9)\n    return x * n\n')
    for program in (pl.load(file), pl.compile(file.read_text())):
        again = pickle.loads(pickle.dumps(program.using(seed=2)))
        assert again(n=2) == program.using(seed=2)(n=2)
    outcome = ask.run("Why?")
    assert pickle.loads(pickle.dumps(outcome)).result == outcome.result


def test_faults_pickle() -> None:
    error = pickle.loads(pickle.dumps(pl.RunError("lost", ("drafts[1]",))))
    assert (error.message, error.path, str(error)) == ("lost", ("drafts[1]",), "drafts[1]: lost")
