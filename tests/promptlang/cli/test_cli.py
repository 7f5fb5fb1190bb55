"""The command line's contract, on a tiny random model."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from command_programs import ASK, FAILS
from places import HELPERS
from rows_files import rows_file
from tiny_command import load_tiny

import promptlang.session.opening as opening
from promptlang.runtime.models.loading import LoadedModel

NUMBERS = {
    "requested_tokens", "optimal_tokens", "computed_tokens", "cached_tokens", "generated_tokens", "forced_tokens",
    "option_tokens", "unscored_tokens", "forwards", "peak_kv_tokens", "evicted_tokens", "preemptions",
    "load_seconds", "compile_seconds", "prefill_seconds", "decode_seconds", "host_seconds",
}  # fmt: skip

THREE = """
program three():
    "Some text."
    fork 3 as branches:
        x = gen(max_tokens=3)
    return [branch.x for branch in branches]
"""

Program = Callable[[str], str]


Command = Callable[..., tuple[int, str, str]]


def start(*arguments: str, **options: object) -> "subprocess.Popen[bytes]":
    """A command in a process of its own."""
    command = [sys.executable, str(HELPERS / "tiny_command.py"), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)  # type: ignore[call-overload, no-any-return]


# One run ---------------------------------------------------------------------------------------------


def test_the_result_is_json_on_stdout_and_the_numbers_are_one_line_on_stderr(
    program: Program, command: Command
) -> None:
    code, out, err = command("run", program(ASK), "--arg", "question=Why?")
    assert code == 0
    assert json.loads(out) == "Why?:1"
    assert len(err.splitlines()) == 1
    assert "prompt tokens asked for" in err


def test_json_is_exactly_one_object_with_everything(program: Program, command: Command) -> None:
    code, out, _ = command("run", program(ASK), "--arg", "question=Why?", "--json", "--seed", "7")
    report = json.loads(out)
    assert code == 0
    assert out.count("\n") == 1
    assert set(report) == {"program", "result", "variables", "usage", "model", "seed"}
    assert (report["program"], report["result"], report["model"], report["seed"]) == ("ask", "Why?:1", "embedded", 7)
    assert isinstance(report["variables"]["answer"], str)
    assert set(report["usage"]) >= NUMBERS


def test_the_usage_says_which_weights_ran(program: Program, command: Command) -> None:
    _, out, _ = command("run", program(ASK), "--arg", "question=Why?", "--json")
    assert json.loads(out)["usage"]["weights"] == "float32"


def test_how_weights_are_kept_is_the_users_choice(
    program: Program, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def load(name: str, **options: object) -> LoadedModel:
        asked.update(options)
        return load_tiny(name)

    monkeypatch.setattr(opening, "load", load)
    command("run", program(ASK), "--arg", "question=Why?", "--dtype", "int4", "--deterministic")
    assert (asked["dtype"], asked["one_layout"]) == ("int4", True)


def test_streamed_text_keeps_out_of_stdout(program: Program, command: Command) -> None:
    _, out, err = command("run", program(ASK), "--arg", "question=Why?", "--json", "--stream")
    json.loads(out)
    assert "Why?" in err
    assert "assistant" in err


def test_nothing_is_streamed_off_a_terminal(program: Program, command: Command) -> None:
    _, _, err = command("run", program(ASK), "--arg", "question=Why?")
    assert "assistant" not in err


def test_log_goes_to_stderr(program: Program, command: Command) -> None:
    code, out, err = command("run", program('program main():\n    log "seen"\n    "text"\n'))
    assert code == 0
    assert "seen" not in out
    assert "log: seen" in err


def test_a_run_without_cache_computes_all_it_asks_for(program: Program, command: Command) -> None:
    text = program(THREE)
    cached, uncached = (json.loads(command("run", text, "--json", *more)[1]) for more in ((), ("--no-cache",)))
    assert cached["result"] == uncached["result"]
    assert uncached["usage"]["computed_tokens"] == uncached["usage"]["requested_tokens"]
    assert cached["usage"]["computed_tokens"] <= cached["usage"]["optimal_tokens"] + cached["usage"]["calls"]


def test_a_run_time_fault_has_its_place_and_branch_and_exit_code_one(program: Program, command: Command) -> None:
    code, out, err = command("run", program(FAILS), "--arg", "text=abc", "--json")
    report = json.loads(out)
    assert code == 1
    assert "result" not in report
    assert report["error"]["line"] == 5
    assert report["error"]["path"] in (["tries[0]"], ["tries[1]"])
    assert f"{report['error']['file']}:5:" in err
    assert "Traceback" not in err


def test_a_fault_without_json_leaves_stdout_empty(program: Program, command: Command) -> None:
    code, out, err = command("run", program(FAILS), "--arg", "text=abc")
    assert (code, out) == (1, "")
    assert "tries[" in err


# What is wrong before anything runs ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "question"),
        (["--arg", "question"], "VALUE"),
        (["--arg", "qestion=a"], "qestion"),
        (["--arg", "question=a", "--arg", "question=b"], "twice"),
        (["--arg", "question=a", "--arg", "times=many"], "times"),
        (["--arg", "question=a", "--arg", "tags=[1"], "tags"),
        (["--arg", "question=a", "--arg", "tags=[1]"], "tags"),
        (["--args", "{"], "--args"),
        (["--args", "[]"], "--args"),
        (["--args", "@missing.json"], "missing.json"),
        (["--arg", "question=a", "--program", "other"], "other"),
        (["--arg", "question=a", "--kv-budget", "12 parsecs"], "12 parsecs"),
        (["--arg", "question=a", "--kv-budget", "1"], "KV budget"),
        (["--arg", "question=a", "--kv-budget", "900TiB"], "smaller --kv-budget"),
        (["--arg", "question=a", "--dtype", "int3"], "int3"),
        (["--arg", "question=a", "--seed", "x"], "seed"),
        (["--arg", "question=a", "--tracee", "x"], "--tracee"),
        (["--arg", "question=a", "--out", "x"], "--data"),
        (["--data", "missing.jsonl"], "missing.jsonl"),
        (["--data", "rows.jsonl", "--out", "missing/out.jsonl"], "missing/out.jsonl"),
        (["--data", "rows.jsonl", "--out", "."], "folder"),
        (["--data", "rows.jsonl", "--resume"], "--out"),
        (["--data", "rows.jsonl", "--out", "rows.jsonl"], "overwrite"),
        (["--data", "rows.jsonl", "--stream"], "--stream"),
    ],
)
def test_a_wrong_command_line_is_one_message_and_exit_code_two(
    arguments: list[str], says: str, program: Program, command: Command
) -> None:
    code, out, err = command("run", program(ASK), *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments", [["frobnicate"], [], ["run"], ["check"], ["run", "missing.pl"], ["check", "missing.pl"]]
)
def test_an_unknown_command_or_a_missing_file_is_exit_code_two(arguments: list[str], command: Command) -> None:
    code, out, err = command(*arguments)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_a_wrong_program_is_reported_on_stderr_and_does_not_run(program: Program, command: Command) -> None:
    code, out, err = command("run", program("program main():\n    return missing\n"))
    assert (code, out) == (2, "")
    assert "PL1" in err
    assert "program.pl:2:12" in err


def test_a_file_with_several_programs_wants_a_choice(program: Program, command: Command) -> None:
    text = program("program one():\n    return 1\n\nprogram two():\n    return 2\n")
    code, _, err = command("run", text)
    assert code == 2
    assert "one, two" in err
    assert json.loads(command("run", text, "--program", "two")[1]) == 2


def test_main_is_the_default_among_several_programs(program: Program, command: Command) -> None:
    text = program("program one():\n    return 1\n\nprogram main():\n    return 2\n")
    assert json.loads(command("run", text)[1]) == 2


# check -----------------------------------------------------------------------------------------------


def test_check_of_a_correct_file_succeeds(program: Program, command: Command) -> None:
    code, _, err = command("check", program(ASK))
    assert (code, err) == (0, "")


def test_explain_prints_the_page_of_a_code(command: Command) -> None:
    code, out, _ = command("explain", "pl203")
    assert (code, out.startswith("# PL203")) == (0, True)
    assert command("explain", "PL999")[0] == 2


def test_check_reports_every_file_and_fails(program: Program, command: Command) -> None:
    file = program("program main():\n    return missing\n")
    other = str(Path(file).with_name("other.pl"))
    Path(other).write_text("program main():\n    x = 1\n    return missing\n", encoding="utf-8")
    code, out, _ = command("check", file, other, "--format", "json")
    found = [item for item in json.loads(out) if item["severity"] == "error"]
    assert code == 2
    assert [(item["file"], item["line"]) for item in found] == [(file, 2), (other, 3)]


# Arguments -------------------------------------------------------------------------------------------

ECHO = """
record Point:
    x: int
    y: int = 0

program echo(
    s: str, i: int = 0, f: float = 0.5, b: bool = true, u: int | none = 3, l: list[int] = [], p: Point = Point(x=0)
):
    return [s, i, f, b, u, l, p]
"""


def test_arguments_are_read_by_the_type_of_their_parameter(program: Program, command: Command) -> None:
    pairs = ["s=12", "i=-4", "f=2", "b=false", "u=none", "l=[1, 2]", 'p={"x": 5, "y": 6}']
    code, out, err = command("run", program(ECHO), *[part for pair in pairs for part in ("--arg", pair)])
    assert code == 0, err
    assert json.loads(out) == ["12", -4, 2.0, False, None, [1, 2], {"x": 5, "y": 6}]


def test_arg_may_hold_equals_signs_and_nothing(program: Program, command: Command) -> None:
    assert json.loads(command("run", program(ECHO), "--arg", "s=a=b=c")[1])[0] == "a=b=c"
    assert json.loads(command("run", program(ECHO), "--arg", "s=")[1])[0] == ""


def test_args_come_from_json_or_a_file_and_arg_wins(program: Program, command: Command, tmp_path: Path) -> None:
    file = tmp_path / "args.json"
    file.write_text('{"s": "from a file", "i": 1}', encoding="utf-8")
    _, out, _ = command("run", program(ECHO), "--args", f"@{file}", "--arg", "i=2")
    assert json.loads(out)[:2] == ["from a file", 2]


# Processes -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_come_from_stdin(program: Program) -> None:
    process = start("run", program(ASK), "--data", "-", stdin=subprocess.PIPE)
    out, err = process.communicate(b'{"question": "a"}\r\n{"question": "b"}', timeout=120)
    assert process.returncode == 0, err
    assert [json.loads(line)["result"] for line in out.splitlines()] == ["a:1", "b:1"]


@pytest.mark.slow
def test_a_reader_that_leaves_is_no_traceback(program: Program, tmp_path: Path) -> None:
    rows = rows_file(tmp_path, *(json.dumps({"question": f"q{i}"}) for i in range(200)))
    process = start("run", program(ASK), "--data", rows)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    assert process.wait(timeout=120) == 1


@pytest.mark.slow
def test_an_interrupt_keeps_finished_rows_and_ends_at_once(program: Program, tmp_path: Path) -> None:
    text = program('program main(n: int):\n    "Count:"\n    x = gen(max_tokens=n)\n    return n\n')
    rows = rows_file(tmp_path, *(json.dumps({"n": 2 if i < 10 else 1500}) for i in range(100)))
    out = tmp_path / "out.jsonl"
    process = start("run", text, "--data", rows, "--out", str(out), "--no-cache")
    deadline = time.time() + 60
    while time.time() < deadline and not (out.exists() and out.read_text().count("\n") >= 10):
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    reports = [json.loads(line) for line in out.read_text().splitlines()]
    assert process.returncode == 130
    assert [report["row"] for report in reports] == list(range(len(reports)))
    assert 10 <= len(reports) < 100
    assert f"{len(reports)} of 100" in err.decode()
    assert b"Traceback" not in err


@pytest.mark.slow
def test_an_interrupt_of_one_run_is_exit_code_130(program: Program) -> None:
    process = start(
        "run", program('program main():\n    log "begun"\n    "A"\n    x = gen(max_tokens=1900, min_tokens=1900)\n')
    )
    assert process.stderr is not None
    while b"begun" not in process.stderr.readline():
        pass
    os.kill(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert b"Traceback" not in err


@pytest.mark.slow
def test_check_loads_no_model_library(program: Program) -> None:
    code = (
        "import sys\nfrom promptlang.cli.app import execute\n"
        f"assert execute(['check', {program(ASK)!r}]) == 0\n"
        "assert not {'torch', 'transformers', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.slow
def test_stdout_is_utf_8_whatever_the_system_speaks(program: Program) -> None:
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    command = [
        sys.executable,
        "-c",
        "from promptlang.cli.app import main; main()",
        "check",
        program('program main():\n    return "é" + no\n'),
    ]
    done = subprocess.run(command, capture_output=True, env=ascii_only)
    assert done.returncode == 2, done.stderr
    assert "é" in done.stdout.decode()
