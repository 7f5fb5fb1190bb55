"""`run FILE --help` says what a program does, what it takes and what it gives."""

import subprocess
import sys
from pathlib import Path

import pytest

from promptlang.cli.app import execute

TEXT = '''
"""Answers letters."""

import "library.pl" as library


## A letter as it came.
record Letter:
    ## Who wrote it.
    sender: str
    lines: list[str] = []


## Finds old letters.
tool find(sender: str) -> list[Letter]


## Writes an answer.
program reply(
    letter: Letter,
    ## How the answer sounds.
    tone: "calm" | "warm" = "calm",
) -> str:
    old = find(letter.sender)
    "${letter} ${old} ${tone}"
    x = gen(max_tokens=3)
    return x


## Counts words.
program words(text: str) -> library.Count:
    return library.Count(number=len(text.split()))
'''
LIBRARY = "record Count:\n    ## How many there are.\n    number: int\n"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "letters.pl").write_text(TEXT)
    (tmp_path / "library.pl").write_text(LIBRARY)
    monkeypatch.setenv("COLUMNS", "100")
    return str(tmp_path / "letters.pl")


def shown(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert execute(["run", *arguments]) == 0
    return capsys.readouterr().out


def test_a_program_shows_its_docs_its_parameters_and_its_tools(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, file, "--program", "reply", "--help")
    for said in [
        "Answers letters.",
        "Writes an answer.",
        "--arg letter=VALUE",
        "[--arg tone=VALUE]",
        "How the answer sounds.",
        'default "calm"',
        "A letter as it came.",
        "Who wrote it.",
        "as JSON",
        "find(sender)",
        "Finds old letters.",
    ]:
        assert said in text
    assert "Counts words." not in text


def test_docs_of_an_imported_record_are_shown(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, file, "--help", "--program", "words")
    assert "How many there are." in text
    assert "as JSON" not in text


def test_no_word_is_cut_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    (tmp_path / "p.pl").write_text("program main(q: str, another_long_parameter_name: int):\n    log q\n")
    text = shown(capsys, str(tmp_path / "p.pl"), "--help")
    assert text.count("required") == 2
    assert "…" not in text


def test_several_programs_are_listed(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, file, "--help")
    assert "reply  Writes an answer." in text
    assert "words  Counts words." in text
    assert "--program NAME" in text


def test_without_a_file_help_is_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--seed" in shown(capsys, "--help")
    assert execute(["run"]) == 2
    assert "FILE" in capsys.readouterr().err


@pytest.mark.parametrize("width", [20, 60, 120])
def test_help_keeps_to_the_terminals_width(
    width: int, file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    text = shown(capsys, file, "--help", "--program", "reply").replace(file, "letters.pl")
    assert all(len(line) <= width for line in text.splitlines()[2:] if "/" not in line)


@pytest.mark.parametrize(
    ("text", "said"), [("program p(:\n    x\n", "PL001"), ("record A:\n    b: str\n", "no program")]
)
def test_a_file_that_cannot_run_says_why(
    text: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken.pl"
    broken.write_text(text)
    assert execute(["run", str(broken), "--help"]) == 2
    assert said in capsys.readouterr().err
    assert execute(["run", str(tmp_path / "nowhere.pl"), "--help"]) == 2


@pytest.mark.slow
def test_help_loads_no_model_library(file: str) -> None:
    code = (
        "import sys; from promptlang.cli.app import execute; "
        f"execute(['run', {file!r}, '--help', '--program', 'reply']); "
        "assert not {'torch', 'transformers'} & sys.modules.keys()"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
