"""`promptlang run --data`: rows in, results out, on a tiny random model."""

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from command_programs import ASK, FAILS
from rows_files import rows_file

Program = Callable[[str], str]
Command = Callable[..., tuple[int, str, str]]


def test_rows_come_out_in_order_one_object_a_line(program: Program, command: Command, tmp_path: Path) -> None:
    rows = rows_file(tmp_path, *(json.dumps({"question": f"q{i}" * (1 + 97 * i % 13)}) for i in range(40)))
    code, out, err = command("run", program(ASK), "--data", rows)
    reports = [json.loads(line) for line in out.splitlines()]
    assert code == 0, err
    assert [report["row"] for report in reports] == list(range(40))
    assert all(report["result"] == f"q{i}" * (1 + 97 * i % 13) + ":1" for i, report in enumerate(reports))
    keys = {"row", "program", "result", "variables", "usage", "model", "seed", "data"}
    assert all(set(report) == keys for report in reports)


def test_broken_rows_are_errors_in_their_place_and_the_others_go_on(
    program: Program, command: Command, tmp_path: Path
) -> None:
    rows = rows_file(
        tmp_path,
        '{"question": "a"}',
        "{not json",
        '{"qestion": "b"}',
        "",
        "[1]",
        '{"question": 1}',
        '{"question": "c"}',
    )
    code, out, err = command("run", program(ASK), "--data", rows)
    reports = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert ["error" in report for report in reports] == [False, True, True, True, True, False]
    assert [report["row"] for report in reports] == [0, 1, 2, 3, 4, 5]
    assert [report["error"]["line"] for report in reports[1:5]] == [2, 3, 5, 6]
    assert all(set(report["error"]) == {"message", "file", "line", "column", "path"} for report in reports[1:5])
    assert "Traceback" not in err


def test_a_row_that_fails_as_it_runs_leaves_the_others_alone(
    program: Program, command: Command, tmp_path: Path
) -> None:
    rows = rows_file(tmp_path, '{"text": "abcd"}', '{"text": "abc"}', '{"text": "abcde"}')
    code, out, _ = command("run", program(FAILS), "--data", rows)
    reports = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [report.get("result") for report in reports] == [4, None, 2]
    assert reports[1]["error"]["path"] in (["tries[0]"], ["tries[1]"])


def test_csv_cells_are_read_by_type(program: Program, command: Command, tmp_path: Path) -> None:
    rows = rows_file(tmp_path, "question,times", '"one, or two?",2', "short", "three,x", "four,4", name="rows.csv")
    code, out, _ = command("run", program(ASK), "--data", rows)
    reports = [json.loads(line) for line in out.splitlines()]
    assert code == 1
    assert [report.get("result") for report in reports] == ["one, or two?:2", None, None, "four:4"]


def test_common_arguments_hold_for_every_row_and_a_rows_own_win(
    program: Program, command: Command, tmp_path: Path
) -> None:
    rows = rows_file(tmp_path, '{"question": "a"}', '{"question": "b", "times": 5}')
    _, out, _ = command("run", program(ASK), "--data", rows, "--arg", "times=3")
    assert [json.loads(line)["result"] for line in out.splitlines()] == ["a:3", "b:5"]


def test_rows_give_the_same_results_alone_and_together(program: Program, command: Command, tmp_path: Path) -> None:
    text = program('program main(q: str):\n    "${q}"\n    x = gen(max_tokens=6, temperature=1.0)\n    return x\n')
    rows = rows_file(tmp_path, *(json.dumps({"q": f"row {i}"}) for i in range(6)))
    out = tmp_path / "out.jsonl"
    together = [json.loads(line)["result"] for line in command("run", text, "--data", rows)[1].splitlines()]
    command("run", text, "--data", rows, "--out", str(out))
    lines = out.read_text().splitlines(keepends=True)
    out.write_text("".join(lines[:3]))
    command("run", text, "--data", rows, "--out", str(out), "--resume")
    assert [json.loads(line)["result"] for line in out.read_text().splitlines()] == together


def test_an_empty_data_file_gives_no_rows(program: Program, command: Command, tmp_path: Path) -> None:
    assert command("run", program(ASK), "--data", rows_file(tmp_path))[:2] == (0, "")


# Broken rows -----------------------------------------------------------------------------------------

FLOATS = """
program main(f: float = 0.5, s: str = "", l: json = none):
    return [f, s, l]
"""


@pytest.mark.parametrize(
    "row",
    [
        r'{"s": "\ud83d"}',
        r'{"l": ["\ud83d"]}',
        r'{"l": {"\ud83d": 1}}',
        *(f'{{"l": {"[" * depth}{"]" * depth}}}' for depth in (102, 500, 700, 900, 5000)),
        f'{{"f": {"9" * 309}}}',
        f'{{"f": -{"9" * 309}}}',
        '{"f": 1, "f": 2}',
        '{"l": {"a": 1, "a": 1}}',
        '{"l": NaN}',
    ],
    ids=lambda row: row[:20],
)
def test_no_row_ends_the_others(row: str, program: Program, command: Command, tmp_path: Path) -> None:
    code, out, err = command("run", program(FLOATS), "--data", rows_file(tmp_path, "{}", row, '{"f": 2}'))
    reports = [json.loads(line) for line in out.splitlines()]
    assert code == 1, err
    assert [report.get("result") for report in reports] == [[0.5, "", None], None, [2.0, "", None]]
    assert reports[1]["error"]["line"] == 2


@pytest.mark.parametrize("pair", ["s=\udcff", f"l={'[' * 700}{']' * 700}", f"f={'9' * 309}", 'l={"a": "\\ud83d"}'])
def test_no_argument_ends_in_a_traceback(pair: str, program: Program, command: Command) -> None:
    code, out, err = command("run", program(FLOATS), "--arg", pair)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert repr(pair[0]) in err or "float" in err


def test_what_may_nest_deeply_enough_is_data(program: Program, command: Command, tmp_path: Path) -> None:
    nested = "[" * 100 + "]" * 100
    code, out, err = command("run", program(FLOATS), "--data", rows_file(tmp_path, f'{{"l": {nested}}}'))
    assert code == 0, err
    assert json.loads(out)["result"][2] == json.loads(nested)


def results_of_csv(command: Command, program: str, folder: Path, *lines: str, name: str = "rows.csv") -> list[object]:
    """The result of each row, or the line of its error."""
    _, out, err = command("run", program, "--data", rows_file(folder, *lines, name=name))
    assert "Traceback" not in err
    reports = [json.loads(line) for line in out.splitlines()]
    return [report["result"] if "result" in report else report["error"]["line"] for report in reports]


def test_a_quote_that_is_not_closed_takes_its_own_row_alone(program: Program, command: Command, tmp_path: Path) -> None:
    lines = ["question,times", "a,1", '"b,2', "c,3", '"d, or e",4', '"f']
    assert results_of_csv(command, program(ASK), tmp_path, *lines) == ["a:1", 3, "c:3", "d, or e:4", 6]


def test_a_cell_may_have_lines(program: Program, command: Command, tmp_path: Path) -> None:
    lines = ["question,times", '"a', 'b",2', "c,x", "d,4"]
    assert results_of_csv(command, program(ASK), tmp_path, *lines) == ["a\nb:2", 4, "d:4"]


def test_a_long_cell_is_read_and_a_blank_first_line_is_not(program: Program, command: Command, tmp_path: Path) -> None:
    text = program("program main(text: str) -> int:\n    return len(text)\n")
    lines = ["", "text", "a" * 200_000, "", "b"]
    assert results_of_csv(command, text, tmp_path, *lines) == [200_000, 1]
    assert results_of_csv(command, text, tmp_path, "text", "ccc", name="ROWS.CSV") == [3]


@pytest.mark.parametrize("header", ['"question', '"question"x', "question,question"])
def test_a_header_that_can_not_be_read_is_one_message(
    header: str, program: Program, command: Command, tmp_path: Path
) -> None:
    rows = rows_file(tmp_path, header, "a", name="rows.csv")
    code, out, err = command("run", program(ASK), "--data", rows)
    assert (code, out, len(err.splitlines())) == (2, "", 1)


@pytest.mark.parametrize("depth", [102, 600, 900, 5000])
def test_a_row_that_nests_too_deeply_fails_alone(
    depth: int, program: Program, command: Command, tmp_path: Path
) -> None:
    deep = '{"data": ' + "[" * depth + "]" * depth + "}"
    text = program("program show(data: json) -> json:\n    return data\n")
    code, printed, err = command("run", text, "--data", rows_file(tmp_path, deep, '{"data": 1}'))
    first, second = map(json.loads, printed.splitlines())
    assert (code, second["result"]) == (1, 1), err
    assert "deep" in first["error"]["message"]


@pytest.mark.parametrize("arguments", [["fmt", "-"], ["run", "PROGRAM", "--data", "-"]])
def test_a_closed_stdin_is_one_message(
    arguments: list[str], program: Program, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    code, out, err = command(*(program(ASK) if argument == "PROGRAM" else argument for argument in arguments))
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "stdin" in err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("place", ["program", "data", "args", "fmt", "check", "resume"])
def test_pipes_are_refused_and_never_waited_for(place: str, program: Program, command: Command, tmp_path: Path) -> None:
    pipe, rows = str(tmp_path / "pipe"), rows_file(tmp_path, '{"question": "a"}')
    os.mkfifo(pipe)
    arguments = {
        "program": ["run", pipe],
        "data": ["run", program(ASK), "--data", pipe],
        "args": ["run", program(ASK), "--args", f"@{pipe}"],
        "fmt": ["fmt", pipe],
        "check": ["check", pipe],
        "resume": ["run", program(ASK), "--data", rows, "--out", pipe, "--resume"],
    }[place]
    code, out, err = command(*arguments)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert "pipe" in err
