"""The programs in the reference are programs."""

import re
from pathlib import Path
from typing import Any

import pytest
from tiny_engine import tiny_engine

from promptlang.checker import check
from promptlang.diagnostics import render_all
from promptlang.interpreter import Interpreter
from promptlang.loader import load_source
from promptlang.lower import lower
from promptlang.source import Source
from promptlang.tools import functions_of, tools_of

PAGE = Path(__file__).parent.parent.parent / "docs" / "language.md"
PROGRAMS = re.findall(r"```promptlang\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", PROGRAMS, ids=[str(number) for number in range(len(PROGRAMS))])
def test_every_program_of_the_reference_is_right(text: str) -> None:
    found = check(load_source(Source(text, "docs/language.md"))).diagnostics
    assert not found, render_all(found)


def test_the_tools_of_the_reference_serve_its_program() -> None:
    page = PAGE.read_text(encoding="utf-8")
    section = page[page.index("\n## Tools\n") :]
    program, functions = (
        re.findall(rf"```{language}\n(.*?)```", section, re.DOTALL)[0] for language in ("promptlang", "python")
    )
    graphs = lower(check(load_source(Source(program, "docs/language.md"))))
    given: dict[str, Any] = {}
    exec(functions, given)
    interpreter = Interpreter(tiny_engine(), graphs, tools=functions_of(tools_of(graphs["shop"], graphs), given))
    assert interpreter.wait(interpreter.start("shop", {"wish": "a cold evening"})).result in ("scarf", "lamp")
