"""`--out` and `--resume`: what is written, what is kept, and what is never touched."""

import errno
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_programs import ASK
from rows_files import rows_file

import promptlang.cli.app as app
import promptlang.session.opening as opening
from promptlang.cli.errors import OutputError
from promptlang.cli.results import RowWriter

Program = Callable[[str], str]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out.jsonl"


@pytest.fixture
def run(program: Program, command: Command, tmp_path: Path, out: Path) -> Callable[..., tuple[int, str, str]]:
    """Runs `ask` over four rows, or over others, into `out`."""
    four = rows_file(tmp_path, *(json.dumps({"question": f"q{i}"}) for i in range(4)))

    def run_rows(*more: str, data: str = four, text: str = ASK) -> tuple[int, str, str]:
        return command("run", program(text), "--data", data, "--out", str(out), *more)

    return run_rows


Run = Callable[..., tuple[int, str, str]]


def without_times(text: str) -> list[dict[str, object]]:
    return [{**json.loads(line), "usage": None} for line in text.splitlines()]


# Going on --------------------------------------------------------------------------------------------


def test_resume_keeps_what_is_there_and_does_the_rest(run: Run, out: Path) -> None:
    run()
    whole = out.read_text()
    lines = whole.splitlines(keepends=True)
    for torn in ("", lines[2][:1], lines[2][:25], lines[2][:60], lines[2][:-1]):
        out.write_text(lines[0] + lines[1] + torn)
        code, printed, err = run("--resume")
        assert (code, printed) == (0, ""), err
        assert out.read_text().startswith(lines[0] + lines[1])
        assert without_times(out.read_text()) == without_times(whole)


def test_resume_of_nothing_is_a_run(run: Run, out: Path) -> None:
    assert run("--resume")[0] == 0
    whole = out.read_text()
    assert run("--resume")[0] == 0
    assert out.read_text() == whole
    assert whole.count("\n") == 4


@pytest.mark.parametrize(
    "more",
    [
        ["--seed", "1"],
        ["--model", "other/model"],
    ],
)
def test_resume_refuses_results_of_another_run(more: list[str], run: Run, out: Path) -> None:
    run()
    before = out.read_text()
    code, _, err = run("--resume", *more)
    assert (code, len(err.splitlines())) == (2, 1)
    assert "line 1" in err
    assert out.read_text() == before


def test_resume_refuses_results_of_another_program_and_of_more_rows(run: Run, out: Path, tmp_path: Path) -> None:
    run()
    before = out.read_text()
    assert run("--resume", text=ASK.replace("program ask", "program answer"))[0] == 2
    code, _, err = run("--resume", data=rows_file(tmp_path, '{"question": "q0"}', name="short.jsonl"))
    assert code == 2
    assert "4 results" in err
    assert out.read_text() == before


def test_resume_goes_on_with_data_that_grew(run: Run, out: Path, tmp_path: Path) -> None:
    run()
    before = out.read_text()
    more = rows_file(tmp_path, *(json.dumps({"question": f"q{i}"}) for i in range(6)), name="more.jsonl")
    assert run("--resume", data=more)[0] == 0
    assert out.read_text().startswith(before)
    assert out.read_text().count("\n") == 6


@pytest.mark.parametrize(
    ("changed", "line"), [(["q0", "other", "q2", "q3"], 2), (["q1", "q0", "q2", "q3"], 1), ([0, "q1", "q2", "q3"], 1)]
)
def test_resume_refuses_results_of_other_rows(
    changed: list[object], line: int, run: Run, out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    before = out.read_text()
    monkeypatch.setattr(opening, "load", None)  # refused before the model loads
    other = rows_file(tmp_path, *(json.dumps({"question": text}) for text in changed), name="other.jsonl")
    code, printed, err = run("--resume", data=other)
    assert (code, printed, len(err.splitlines())) == (2, "", 1)
    assert f"line {line} of {out}" in err
    assert f"{other}:{line}" in err
    assert out.read_text() == before


def test_resume_refuses_results_with_other_arguments_on_the_command_line(
    program: Program, command: Command, out: Path, tmp_path: Path
) -> None:
    text = ASK.replace("question: str", "question: str, tone: str")
    rows = rows_file(tmp_path, '{"question": "q"}')
    asked = ["run", program(text), "--data", rows, "--out", str(out), "--arg"]
    assert command(*asked, "tone=calm")[0] == 0
    before = out.read_text()
    assert command(*asked, "tone=loud", "--resume")[0] == 2
    assert command(*asked, "tone=calm", "--resume")[0] == 0
    assert out.read_text() == before


def test_resume_goes_on_when_rows_say_the_same_in_other_words(run: Run, out: Path, tmp_path: Path) -> None:
    broken = rows_file(tmp_path, '{"question": "q0"}', "{", name="one.jsonl")
    run(data=broken)
    before = out.read_text()
    assert run("--resume", data=rows_file(tmp_path, "", ' {"question":"q\\u0030"}', "{", name="two.jsonl"))[0] == 0
    assert out.read_text() == before


@pytest.mark.parametrize("order", [[1], [0, 2], [0, 0], [0, 1, 1], [1, 0], [0, 1, 3]])
def test_resume_refuses_holes_doubles_and_another_order(order: list[int], run: Run, out: Path) -> None:
    run()
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[number] for number in order))
    assert run("--resume")[0] == 2
    assert out.read_text() == "".join(lines[number] for number in order)


@pytest.mark.parametrize(
    "text",
    [
        "a shopping list\n",
        "a shopping list",
        "{}\n",
        "[]\n",
        "\n",
        '{"row": 0}\n',
        '{"row": true}\n',
        "[" * 5000 + "\n",
    ],
)
def test_resume_refuses_and_keeps_what_is_no_results_file(text: str, run: Run, out: Path) -> None:
    out.write_text(text)
    code, _, err = run("--resume")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "line 1" in err
    assert out.read_text() == text


@pytest.mark.parametrize("out_is", ["", "-"])
def test_out_is_a_file(out_is: str, program: Program, command: Command, tmp_path: Path) -> None:
    code, printed, err = command("run", program(ASK), "--data", rows_file(tmp_path, "{}"), "--out", out_is)
    assert (code, printed, len(err.splitlines())) == (2, "", 1)
    assert "stdout" in err
    assert not os.path.exists("-")


# What is never written over --------------------------------------------------------------------------

LIBRARY = """
program library():
    a = gen(schema "s.json")
    b = gen(grammar "g.lark")
"""


@pytest.mark.parametrize("role", ["the program", "import", "schema", "grammar", "--data", "--tools", "--args"])
@pytest.mark.parametrize("link", ["itself", "hard link", "symbolic link"])
@pytest.mark.parametrize("resumes", [False, True])
def test_out_never_overwrites_what_the_run_reads(
    role: str, link: str, resumes: bool, command: Command, tmp_path: Path, out: Path
) -> None:
    files = {
        "the program": (tmp_path / "p.pl", 'import "library.pl" as library\n' + ASK),
        "import": (tmp_path / "library.pl", LIBRARY),
        "schema": (tmp_path / "s.json", '{"type": "integer"}'),
        "grammar": (tmp_path / "g.lark", 'start: "a"\n'),
        "--data": (tmp_path / "rows.jsonl", '{"question": "a"}\n'),
        "--tools": (tmp_path / "tools.py", "X = 1\n"),
        "--args": (tmp_path / "args.json", "{}\n"),
    }
    for path, text in files.values():
        path.write_text(text)
    target = files[role][0]
    if link == "hard link":
        os.link(target, out)
    elif link == "symbolic link":
        out.symlink_to(target)
    else:
        out = target
    paths = {name: str(path) for name, (path, _) in files.items()}
    arguments = ["--data", paths["--data"], "--tools", paths["--tools"], "--args", f"@{paths['--args']}"]
    code, _, err = command(
        "run", paths["the program"], *arguments, "--out", str(out), *(["--resume"] if resumes else [])
    )
    assert (code, len(err.splitlines())) == (2, 1)
    assert "overwrite" in err
    assert all(path.read_text() == text for path, text in files.values())


def test_a_file_may_be_called_as_the_model_is(
    program: Program, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = rows_file(tmp_path, '{"question": "a"}')
    assert command("run", program(ASK), "--data", rows, "--out", "embedded")[0] == 0
    assert (tmp_path / "embedded").read_text().count("\n") == 1


def test_a_model_that_is_not_there_leaves_out_as_it_is(run: Run, out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out.write_text("old results\n")
    assert run("--kv-budget", "1")[0] == 2
    assert out.read_text() == "old results\n"


@pytest.mark.parametrize("is_long", [True, False])
def test_an_out_file_that_can_not_be_opened_is_refused_before_the_model_loads(
    run: Run, out: Path, monkeypatch: pytest.MonkeyPatch, is_long: bool
) -> None:
    monkeypatch.setattr(opening, "load", None)
    if is_long:
        code, _, err = run("--out", str(out.with_name("n" * 300)))
    else:
        out.symlink_to(out.parent / "missing" / "out.jsonl")
        code, _, err = run()
    assert (code, len(err.splitlines())) == (2, 1)
    assert "can't be written" in err


@pytest.mark.slow
@pytest.mark.parametrize("place", ["--out", "--data", "FILE", "--args", "--tools", "fmt", "-o"])
def test_a_name_that_is_too_long_is_one_message(place: str, program: Program, command: Command, tmp_path: Path) -> None:
    long, file = str(tmp_path / ("n" * 300)), program(ASK)
    rows = rows_file(tmp_path, '{"question": "a"}')
    arguments = {
        "--out": ["run", file, "--data", rows, "--out", long],
        "--data": ["run", file, "--data", long, "--out", str(tmp_path / "out")],
        "FILE": ["run", long],
        "--args": ["run", file, "--args", f"@{long}"],
        "--tools": ["run", file, "--tools", f"{long}.py"],
        "fmt": ["fmt", long],
        "-o": ["graph", file, "-o", f"{long}.dot"],
    }[place]
    code, printed, err = command(*arguments)
    assert (code, printed, len(err.splitlines())) == (2, "", 1)


# A full disk -----------------------------------------------------------------------------------------


class FullDisk(io.StringIO):
    """Takes so many flushes, then no more.

    Args:
        room: how many.
        error: what it says then.
        descriptor: the file behind it.
    """

    def __init__(self, room: int, error: int = errno.ENOSPC, descriptor: int = -1) -> None:
        super().__init__()
        self._room = room
        self._error = error
        self._descriptor = descriptor

    def flush(self) -> None:
        if self._room == 0:
            raise OSError(self._error, os.strerror(self._error))
        self._room -= 1

    def fileno(self) -> int:
        return self._descriptor


def test_a_full_disk_says_how_many_rows_are_written() -> None:
    disk = FullDisk(room=2)
    writer = RowWriter(disk, "--out: x")
    for row in range(2):
        writer.write({"row": row})
    with pytest.raises(OutputError, match=r"--out: x can't be written.*2 rows"):
        writer.write({"row": 2})
    disk.close()


@pytest.mark.parametrize(
    ("error", "platform", "says"),
    [
        (errno.ENOSPC, "linux", os.strerror(errno.ENOSPC)),
        (errno.EPIPE, "linux", ""),
        (errno.EINVAL, "win32", ""),
        (errno.EINVAL, "linux", os.strerror(errno.EINVAL)),
    ],
)
def test_a_stdout_that_takes_no_more_is_at_most_one_message(
    error: int,
    platform: str,
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(app.sys, "platform", platform)
    with (tmp_path / "stdout").open("w") as file:
        monkeypatch.setattr(sys, "stdout", FullDisk(0, error, file.fileno()))
        assert app.execute(["explain", "PL203"]) == 1
        assert os.path.samestat(os.fstat(file.fileno()), os.stat(os.devnull))
    captured = capsys.readouterr().err
    assert says in captured
    assert len(captured.splitlines()) == bool(says)


@pytest.mark.parametrize("arguments", [["--help"], ["--version"], ["check", "--help"]])
def test_help_that_can_not_be_written_is_one_message(
    arguments: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "stdout").open("w") as file:
        monkeypatch.setattr(sys, "stdout", FullDisk(0, descriptor=file.fileno()))
        assert app.execute(arguments) == 1
    assert capsys.readouterr().err == f"promptlang: stdout can't be written: {os.strerror(errno.ENOSPC)}\n"


@pytest.mark.parametrize("closed", ["stdout", "stderr"])
def test_what_is_for_a_closed_stream_is_dropped(
    closed: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(app, "end_at_once", sys.exit)  # this process goes on
    monkeypatch.setattr(sys, closed, None)
    for arguments, code in ((["explain", "PL203"], 0), (["explain", "PL999"], 2)):
        monkeypatch.setattr(sys, "argv", ["promptlang", *arguments])
        with pytest.raises(SystemExit) as ended:
            app.main()
        assert ended.value.code == code
    out, err = capsys.readouterr()
    assert (out == "", err == "") == (closed == "stdout", closed == "stderr")
    assert "PL999" not in out


@pytest.mark.slow
def test_the_cost_of_programs_comes_with_no_other_words(program: Program, command: Command) -> None:
    assert command("check", "--cost", program('program f() -> str:\n    return "a"\n'))[2] == ""


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_a_full_device_takes_no_row(program: Program, command: Command, tmp_path: Path) -> None:
    rows = rows_file(tmp_path, '{"question": "a"}')
    code, printed, err = command("run", program(ASK), "--data", rows, "--out", "/dev/full")
    assert (code, printed) == (1, "")
    assert "0 rows are written" in err
    assert "Traceback" not in err
