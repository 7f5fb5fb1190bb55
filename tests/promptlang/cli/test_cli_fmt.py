"""`promptlang fmt`: which files it writes, what it says, and how it ends."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from promptlang.cli.app import execute

ODD = "program p( ):\n  pass"
EVEN = "program p():\n    pass\n"
BROKEN = "program p(:\n  pass\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user stands: a folder with an odd, an even and a broken program."""
    for name, text in {"odd.pl": ODD, "even.pl": EVEN, "broken.pl": BROKEN}.items():
        (tmp_path / name).write_bytes(text.encode())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def stdin(monkeypatch: pytest.MonkeyPatch) -> Callable[[bytes], None]:
    """Sets what stands on stdin."""
    return lambda data: monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(data)))


def test_files_are_written_in_place_and_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fmt", "odd.pl", "even.pl"]) == 0
    assert (folder / "odd.pl").read_text() == (folder / "even.pl").read_text() == EVEN
    out, said = capsys.readouterr()
    assert out == ""
    assert "odd.pl" in said
    assert "even.pl" not in said


def test_a_file_that_is_laid_out_is_not_written(folder: Path) -> None:
    (folder / "even.pl").chmod(0o444)
    before = (folder / "even.pl").stat().st_mtime_ns
    assert execute(["fmt", "even.pl"]) == 0
    assert (folder / "even.pl").stat().st_mtime_ns == before


def test_check_writes_nothing_shows_the_change_and_fails(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fmt", "--check", "odd.pl", "even.pl"]) == 1
    assert (folder / "odd.pl").read_text() == ODD
    out = capsys.readouterr().out.splitlines()
    assert "-program p( ):" in out
    assert "+program p():" in out
    assert not any("even.pl" in line for line in out)


def test_check_is_content_with_what_is_laid_out(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["fmt", "--check", "even.pl"]) == 0
    assert capsys.readouterr().out == ""


def test_a_file_with_errors_is_reported_and_left_alone_and_the_others_are_written(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["fmt", "broken.pl", "odd.pl"]) == 2
    assert (folder / "broken.pl").read_text() == BROKEN
    assert (folder / "odd.pl").read_text() == EVEN
    assert "broken.pl:1:11: error PL001" in capsys.readouterr().err


def test_where_a_file_can_not_be_read_none_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "latin.pl").write_bytes(b"# \xe9\n")
    for missing in ("nowhere.pl", "latin.pl"):
        assert execute(["fmt", "odd.pl", missing]) == 2
        assert missing in capsys.readouterr().err
    assert (folder / "odd.pl").read_text() == ODD


def test_a_folder_means_its_programs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for inside in (folder / "sub", folder / ".hidden"):
        inside.mkdir()
        (inside / "odd.pl").write_text(ODD)
    (folder / "broken.pl").unlink()
    assert execute(["fmt", "."]) == 0
    assert (folder / "sub" / "odd.pl").read_text() == EVEN
    assert (folder / ".hidden" / "odd.pl").read_text() == ODD
    (folder / "empty").mkdir()
    assert execute(["fmt", "empty"]) == 2
    assert "no .pl file" in capsys.readouterr().err


def test_stdin_goes_to_stdout(stdin: Callable[[bytes], None], capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    stdin('\ufeffprogram p( ):\r\n  "é"'.encode())
    assert execute(["fmt", "-"]) == 0
    assert capfdbinary.readouterr() == ('program p():\r\n    "é"\r\n'.encode(), b"")


def test_stdin_with_errors_gives_no_output(
    stdin: Callable[[bytes], None], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    stdin(BROKEN.encode())
    assert execute(["fmt", "-"]) == 2
    out, said = capfdbinary.readouterr()
    assert out == b""
    assert b"<stdin>:1:11: error PL001" in said
