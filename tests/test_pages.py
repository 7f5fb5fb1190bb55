"""The programs in the reference and the tour are programs."""

import re
from importlib import import_module
from typing import Any

import pytest
from places import DOCS
from tiny_engine import tiny_engine, tiny_tokenizer

from promptlang.checker.check import check
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.optimise import optimise
from promptlang.cost.estimate import Rehearsal
from promptlang.diagnostics.rendering import render_all
from promptlang.diagnostics.source import Source
from promptlang.interpreter.host_functions import functions_of, tools_of
from promptlang.interpreter.interpreter import Interpreter
from promptlang.runtime.local_backend import LocalBackend
from promptlang.syntax.formatter.layout import format_source
from promptlang.syntax.loader import load_source

PAGE = DOCS / "language.md"


def programs_of(name: str) -> list[str]:
    return re.findall(r"```promptlang\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)


TOUR = programs_of("tour.md")
PROGRAMS = [*programs_of("language.md"), *TOUR]


@pytest.mark.parametrize("text", PROGRAMS, ids=[str(number) for number in range(len(PROGRAMS))])
def test_every_program_of_a_page_is_right_and_in_the_one_layout(text: str) -> None:
    source = Source(text, "page")
    found = check(load_source(source)).diagnostics
    assert not found, render_all(found)
    assert format_source(source) == text


@pytest.mark.parametrize("text", TOUR, ids=[str(number) for number in range(len(TOUR))])
def test_every_program_of_the_tour_runs(text: str) -> None:
    graphs = optimise(lower(check(load_source(Source(text, "tour"))))).graphs
    for name in graphs:
        assert Rehearsal(graphs, name, {}, tiny_tokenizer(), 1).estimate(1).figures["calls"].low > 0


def test_the_tools_of_the_reference_serve_its_program() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("\n## Tools\n") :]
    program, functions = (
        re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)[0] for language in ("promptlang", "python")
    )
    graphs = lower(check(load_source(Source(program, "docs/language.md"))))
    given: dict[str, Any] = {}
    exec(functions, given)
    interpreter = Interpreter(
        LocalBackend(tiny_engine()), graphs, tools=functions_of(tools_of(graphs["shop"], graphs), given)
    )
    assert interpreter.wait(interpreter.start("shop", {"wish": "a cold evening"})).result in ("scarf", "lamp")


PROMISES = (DOCS / "promises.md").read_text(encoding="utf-8")


def test_every_promise_names_tests_that_are_there() -> None:
    rows = [line for line in PROMISES.split("\n") if line.startswith("| ") and "---" not in line]
    named = re.findall(r"\[`(.*?)`\]\(\.\./(.*?)\)", PROMISES)
    assert len(named) > 30
    for shown, path in named:
        assert shown == path
        assert (DOCS.parent / path).is_file(), path
    heads = ("held by |", "in the code |")
    assert all("`tests/" in row or "`promptlang." in row or row.endswith(heads) for row in rows)


LIMITS = re.findall(r"\| (\d+) \| `(promptlang\..*?)` \|", PROMISES)


def test_the_page_has_limits() -> None:
    assert len(LIMITS) > 10


@pytest.mark.parametrize(("number", "name"), LIMITS)
def test_a_limit_of_the_page_is_the_codes(number: str, name: str) -> None:
    module, _, constant = name.rpartition(".")
    assert getattr(import_module(module), constant) == int(number)
