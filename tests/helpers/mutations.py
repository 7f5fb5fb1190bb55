"""Programs to try things on: those of the repository, and what becomes of them after some accidents."""

import re

from hypothesis import strategies as st
from places import ROOT

PROGRAM_FILES = sorted([*ROOT.glob("tests/programs/good/**/*.pl"), *ROOT.glob("examples/*.pl")])
TEXTS = [path.read_text(encoding="utf-8") for path in PROGRAM_FILES]
PAGE_PROGRAMS = re.findall(
    r"```promptlang\n(.*?)```", (ROOT / "docs" / "language.md").read_text(encoding="utf-8"), re.DOTALL
)

PIECES = [
    '"', '"""', "${", "}", "(", ")", "[", "]", "{", ":", "\n", "    ", "\t", "\r\n", "fork", "if", "else", "=", "..",
    "|", "/", "#", "##", "gen(", "x", "1", "\\", "program p():\n", "é", "arm a:", "$", 'r"', " in ", ".probs",
    "adopt ", "'", "\x00", "\ufeff", ",", ".",
]  # fmt: skip


@st.composite
def mutated_programs(draw: st.DrawFn) -> str:
    """A program with some characters cut out and some pieces put in."""
    text = draw(st.sampled_from(TEXTS))
    for _ in range(draw(st.integers(1, 5))):
        place = draw(st.integers(0, len(text)))
        cut = draw(st.integers(0, 12))
        text = text[:place] + draw(st.sampled_from(["", *PIECES])) + text[place + cut :]
    return text
