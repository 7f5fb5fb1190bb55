"""How typed text looks, and what completes it."""

import io

import pytest

from promptlang.interpreter.loop import EngineLoop
from promptlang.repl.conversation import Conversation
from promptlang.repl.known import Known
from promptlang.repl.printer import Printer
from promptlang.repl.words import completions, keywords, pieces
from promptlang.runtime.scripted import ScriptedBackend


@pytest.fixture
def known() -> Known:
    known = Known()
    known.declare("record Point:\n    x: int\n    at: list[Point]\n")
    for statement in (
        "p = Point(x=1, at=[])\n",
        'fork 2 as drafts:\n    body = "b"\n',
        "fork as b:\n    arm yes:\n        pass\n",
    ):
        known.variables = known.statements(statement, "<repl>")[1]
    return known


def test_every_piece_of_a_text_is_there_whatever_it_is() -> None:
    text = 'user: "Hi ${x}" # c\n# d\nx = gen(int) or 1.5 ¿\n"""open'
    found = list(pieces(text))
    assert "".join(piece for _, piece in found) == text
    kinds = dict(reversed(pair) for pair in found)  # type: ignore[misc]
    assert [kinds[word] for word in ("user", '"Hi ${x}"', "# c", "# d", "gen", "or", "1.5", "x")] == [
        "role",
        "string",
        "comment",
        "comment",
        "keyword",
        "keyword",
        "number",
        "",
    ]


def test_keywords_come_from_the_grammar() -> None:
    assert {"user", "fork", "gen", "score", "and", "none", "schema"} <= set(keywords())


@pytest.mark.parametrize(
    ("before", "there", "not_there"),
    [
        ("", "fork", "max_tokens="),
        ("fo", "fork", "gen"),
        ("x = gen(ma", "max_tokens=", "by="),
        ("x = gen(int in len(a)..3, ", "temperature=", "by="),
        ("x = select(", "options=", "max_tokens="),
        ("x = gen(max_tokens=2)\ny = ", "p", "max_tokens="),
        ("y = gen(Po", "Point", "p"),
        ("y = gen(in", "int", "p"),
        ("y = p.", "x", "p"),
        ("y = p.at[0].", "at", "p"),
        ("adopt drafts[1].", "body", "x"),
        ("adopt b.", "yes", "x"),
        ("y = nope.", None, "x"),
    ],
)
def test_what_may_follow(known: Known, before: str, there: str | None, not_there: str) -> None:
    length, words = completions(known, before)
    assert there is None or there in words
    assert not_there not in words
    assert before.endswith(before[len(before) - length :])


def test_branches_speak_when_they_end_and_pruned_ones_are_silent() -> None:
    out = io.StringIO()
    conversation = Conversation(
        Known(), lambda: EngineLoop(ScriptedBackend(["one\ntwo", "three", 1.0, 0.0])), Printer(out)
    )
    conversation.run('fork 2 as d:\n    x = gen()\n    log x.upper()[0:1]\n    s = score("y")\n    keep 1 by s\n')
    assert sorted(out.getvalue().splitlines()) == ["d[0]: log: O", "d[0]: one", "d[0]: two", "d[1]: log: T"]
    conversation.close()
