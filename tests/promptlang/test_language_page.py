"""The programs in the reference are programs."""

import re
from pathlib import Path

import pytest

from promptlang.checker import check
from promptlang.diagnostics import render_all
from promptlang.loader import load_source
from promptlang.source import Source

PAGE = Path(__file__).parent.parent.parent / "docs" / "language.md"
PROGRAMS = re.findall(r"```promptlang\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", PROGRAMS, ids=[str(number) for number in range(len(PROGRAMS))])
def test_every_program_of_the_reference_is_right(text: str) -> None:
    found = check(load_source(Source(text, "docs/language.md"))).diagnostics
    assert not found, render_all(found)
