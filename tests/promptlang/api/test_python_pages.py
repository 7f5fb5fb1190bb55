"""The pages about the Python door: their snippets run, and the table of both sides has all of both."""

import inspect
import re
import shutil
import typing
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from places import DOCS, EXAMPLES

import promptlang as pl
from promptlang.api.statements import GenOptions, SelectOptions
from promptlang.syntax import ast
from promptlang.values import options as known

PAGE = (DOCS / "python.md").read_text(encoding="utf-8")
TABLE = PAGE[PAGE.index("\n## Both sides\n") :]

KEYWORDS = {
    ast.Text: '"text',
    ast.Role: "user:",
    ast.Ask: "gen(",
    ast.Assign: "x = expression",
    ast.Call: "x = program(",
    ast.Use: "use ",
    ast.If: "if",
    ast.For: "for",
    ast.While: "while",
    ast.Break: "break",
    ast.Continue: "continue",
    ast.Pass: "pass",
    ast.Pin: "pin",
    ast.ForkCount: "fork 3",
    ast.ForkEach: "fork x in",
    ast.ForkArms: "fork as",
    ast.Beam: "beam ",
    ast.KeepBest: "keep 1",
    ast.KeepWhere: "keep where",
    ast.KeepFirst: "keep first",
    ast.Adopt: "adopt",
    ast.Require: "require",
    ast.Log: "log",
    ast.Return: "return",
}
ANSWERS = {ast.Gen: "gen(", ast.Select: "select(", ast.Score: "score("}
OF_THE_INTERPRETER = {"kept"}


def test_every_snippet_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(EXAMPLES / "triage.pl", tmp_path)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    for snippet in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(compile(snippet, "docs/python.md", "exec"), names)
    with ExitStack() as scripts:
        names["test_review"](lambda script: scripts.enter_context(pl.testing.answers(script)))


def rows() -> list[list[str]]:
    lines = [line for line in TABLE.splitlines() if line.startswith("| ")]
    return [line.strip("|").split(" | ") for line in lines[2:]]


def cells(column: int) -> str:
    return "\n".join(row[column] for row in rows())


def test_the_table_has_every_statement_of_the_language() -> None:
    assert set(KEYWORDS) == set(ast.Statement.__subclasses__())
    assert set(ANSWERS) == set(ast.Answer.__subclasses__())
    missing = [kind.__name__ for kind, word in {**KEYWORDS, **ANSWERS}.items() if word not in cells(0)]
    assert not missing


def test_the_table_has_every_statement_of_python_and_no_other() -> None:
    public = {name for name in dir(pl.Branch) if not name.startswith("_")} - OF_THE_INTERPRETER
    assert set(re.findall(r"\b[pb]\.(\w+)", TABLE)) == public
    both = {name for name in dir(pl.AsyncBranch) if not name.startswith("_")} - OF_THE_INTERPRETER
    assert both == public


def test_the_table_has_every_option() -> None:
    for name, options, of_the_language in (
        ("gen", GenOptions, known.GEN_OPTIONS),
        ("select", SelectOptions, known.SELECT_OPTIONS),
    ):
        [row] = [row for row in rows() if f"p.{name}(" in row[1]]
        said = set(re.findall(r"`(\w+)`", row[2].partition(";")[0]))
        assert said == {*typing.get_type_hints(options)} | ({"logprobs"} if name == "gen" else set())
        assert said == set(of_the_language)


def test_every_error_of_the_door_is_on_the_page() -> None:
    errors = {
        name for name in dir(pl) if inspect.isclass(value := getattr(pl, name)) and issubclass(value, BaseException)
    }
    assert errors == {name for name in re.findall(r"`pl\.(\w+)`", PAGE) if name in errors}


# Coming from elsewhere -----------------------------------------------------------------------------------------

ELSEWHERE = (DOCS / "coming-from.md").read_text(encoding="utf-8")
TWINS = re.findall(r"^\| `[^|]*` \| `([^|`]*)` \|", ELSEWHERE, re.MULTILINE)


def test_every_row_has_a_twin_that_is_tried() -> None:
    assert len(TWINS) == len([line for line in ELSEWHERE.splitlines() if line.startswith("| `")])


@pytest.mark.parametrize("twin", TWINS)
def test_every_twin_of_what_others_say_runs(twin: str) -> None:
    [setting] = re.findall(r"```python\n(.*?)```", ELSEWHERE, re.DOTALL)
    names: dict[str, Any] = {"__name__": "page"}
    exec(setting, names)
    with pl.testing.random_answers():
        if re.match(r"(?!f = ).*\bp\.", twin):
            pl.program(lambda p: exec(twin, {**names, "p": p}))()
        else:
            exec(twin, names)
