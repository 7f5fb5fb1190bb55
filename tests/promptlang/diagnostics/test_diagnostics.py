"""What is wrong with a program is said: where, with its code, and how it looks.

Each program in `tests/programs/bad` ends with the diagnostics it is to have, as comments. `PROMPTLANG_REFRESH=1 pytest
tests/promptlang/diagnostics` writes them anew.
"""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from places import PROGRAMS
from rich.console import Console

from promptlang.checker.check import check
from promptlang.cli.check import checked, diagnostics_of
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic, codes, explain, near, print_all, render, render_all, to_json
from promptlang.diagnostics.source import Source, Span
from promptlang.syntax.loader import load, load_source

BAD = PROGRAMS / "bad"
GOOD = BAD.parent / "good"
MARK = "#! "


def found_in(path: Path) -> list[str]:
    """The diagnostics of a file, one a line."""
    lines = []
    for diagnostic in diagnostics_of(checked(str(path))):
        line, column = diagnostic.span.position
        fix = "" if diagnostic.fix is None else f" [{diagnostic.fix}]"
        severity = "" if diagnostic.is_error else "warning: "
        lines.append(f"{MARK}{line}:{column} {diagnostic.code} {severity}{diagnostic.message}{fix}")
    return lines


@pytest.mark.parametrize("path", sorted(BAD.glob("*.pl")), ids=lambda path: path.stem)
def test_bad_programs_have_the_diagnostics_they_name(path: Path) -> None:
    text = path.read_bytes().decode()
    program = "".join(line for line in text.splitlines(keepends=True) if not line.startswith(MARK))
    found = found_in(path)
    if os.environ.get("PROMPTLANG_REFRESH"):
        path.write_bytes((program + "".join(f"{line}\n" for line in found)).encode())
    else:
        assert [line for line in text.splitlines() if line.startswith(MARK)] == found
    assert path.stem.partition("_")[0] in {line.split()[2] for line in found}


@pytest.mark.parametrize("path", sorted(GOOD.glob("*.pl")), ids=lambda path: path.stem)
def test_good_programs_have_no_errors(path: Path) -> None:
    assert check(load(path)).ok


def test_every_code_has_a_page_and_a_bad_program() -> None:
    source = Path(faults.__file__).read_text(encoding="utf-8")
    used = set(re.findall(r'Diagnostic\(\s*"(PL\d{3})"', source))
    assert used == set(codes())
    assert used <= {path.stem.partition("_")[0] for path in BAD.glob("*.pl")}


@pytest.mark.parametrize("code", codes())
def test_a_page_begins_with_its_code(code: str) -> None:
    assert explain(code.lower()).startswith(f"# {code}: ")


def examples(code: str) -> list[tuple[str, str]]:
    """The programs of a code's page, each with the word above it."""
    return re.findall(r"^(Wrong|Right):\n\n```\n(.*?)```", explain(code), re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("code", sorted({*codes()} - {"PL010"}))
def test_what_a_page_shows_is_as_wrong_or_right_as_it_says(code: str, tmp_path: Path) -> None:
    folder = tmp_path / "programs" / "bad"
    shutil.copytree(BAD, folder)
    [name] = [path.name for path in BAD.glob(f"{code}_*.pl")][:1]
    kinds = []
    for kind, program in examples(code):
        (folder / name).write_text(program, encoding="utf-8")
        found = {diagnostic.code for diagnostic in diagnostics_of(checked(str(folder / name)))}
        assert code in found if kind == "Wrong" else not found, found
        kinds.append(kind)
    assert kinds[:1] == ["Wrong"]
    assert "Right" in kinds


@pytest.mark.parametrize("code", ["PL999", "", "../codes/PL001", "PL001.md"])
def test_there_is_no_page_for_what_is_no_code(code: str) -> None:
    with pytest.raises(KeyError):
        explain(code)


def diagnostic_at(text: str, part: str) -> Diagnostic:
    start = text.index(part)
    return Diagnostic("PL101", "what", Span(Source(text, "a.pl"), start, start + len(part)), fix="so")


def test_a_diagnostic_shows_code_place_line_underline_and_fix() -> None:
    assert render(diagnostic_at("one\nlog tikcet + 1\n", "tikcet")).splitlines() == [
        "a.pl:2:5: error PL101: what",
        "  2 | log tikcet + 1",
        "    |     ^^^^^^",
        "  fix: so",
    ]


@pytest.mark.parametrize(
    ("text", "part", "shown", "mark"),
    [
        ("\tlog x", "x", "    log x", "        ^"),
        ("a\tx", "x", "a   x", "    ^"),
        ('"日本" + x', "x", '"日本" + x', "         ^"),
        ('log "日本"', '"日本"', 'log "日本"', "    ^^^^^^"),
        ("é\u0301 x", "x", "é\u0301 x", "  ^"),
        ("a\x1bb x", "x", "a\N{REPLACEMENT CHARACTER}b x", "    ^"),
        ("a\u202eb x", "x", "a\N{REPLACEMENT CHARACTER}b x", "    ^"),
    ],
)
def test_the_underline_is_right_under_tabs_and_wide_characters(text: str, part: str, shown: str, mark: str) -> None:
    assert render(diagnostic_at(text, part)).splitlines()[1:3] == [f"  1 | {shown}", f"    | {mark}"]


def test_nothing_that_a_terminal_obeys_is_shown_as_it_is() -> None:
    text = 'log x["\x1b[2J"]'
    span = Span(Source(text, "a\x9b.pl"), 4, 5)
    shown = render(Diagnostic("PL201", 'what\x07, not "\x1b[2J"', span, fix="so\r", notes=(("no\u2028te", span),)))
    assert all(char.isprintable() for char in shown.replace("\n", ""))
    assert len(shown.splitlines()) == 5


def test_a_message_of_several_lines_keeps_them() -> None:
    assert render(Diagnostic("PL411", "one\n  two", Span(Source("x"), 0, 1))).splitlines()[:2] == [
        "<string>:1:1: error PL411: one",
        "  two",
    ]


def test_a_span_over_lines_is_underlined_to_the_end_of_its_first_line() -> None:
    assert render(diagnostic_at("f(1,\n  2)\n", "(1,\n  2)")).splitlines()[2] == "    |  ^^^"


def test_a_span_at_the_end_of_the_text_is_marked() -> None:
    assert render(Diagnostic("PL001", "what", Span(Source("log 1 +"), 7, 7))).splitlines()[2] == "    |        ^"


def test_all_are_counted() -> None:
    warning = faults.unused(diagnostic_at("x", "x").span, "x", "variable")
    error = diagnostic_at("x", "x")
    assert render_all([error, warning, error]).splitlines()[-1] == "2 errors, 1 warning"
    assert render_all([warning]).splitlines()[-1] == "1 warning"


def test_json_holds_what_a_tool_needs() -> None:
    [found] = json.loads(to_json([diagnostic_at("one\nlog tikcet\n", "tikcet")]))
    assert found == {
        "code": "PL101",
        "severity": "error",
        "message": "what",
        "file": "a.pl",
        "line": 2,
        "column": 5,
        "end_line": 2,
        "end_column": 11,
        "fix": "so",
        "notes": [],
    }


def test_a_console_gets_the_same_text() -> None:
    diagnostics = [diagnostic_at("log [red]tikcet[/red]", "tikcet")]
    console = Console(record=True, width=40, force_terminal=True, file=open(os.devnull, "w"))  # noqa: SIM115
    print_all(diagnostics, console)
    assert console.export_text() == render_all(diagnostics)


@pytest.mark.parametrize(
    ("word", "expected"),
    [("retrun", ["return"]), ("usr", ["user"]), ("xyz", []), ("RETURN", ["return"]), ("fro", ["for"])],
)
def test_only_near_words_are_offered(word: str, expected: list[str]) -> None:
    assert near(word, ["return", "user", "for", "while"]) == expected


def test_at_most_three_words_are_offered() -> None:
    assert len(near("name", ["name1", "name2", "name3", "name4"])) == 3


def test_a_program_with_errors_is_not_ok_and_one_with_warnings_is() -> None:
    assert not check(load_source(Source("program p():\n    log x\n"))).ok
    assert check(load_source(Source("program p(x: int):\n    pass\n"))).ok
