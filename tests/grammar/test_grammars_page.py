"""What the page on grammars and schemas says is so."""

import re

import pytest
from jsonschema import Draft7Validator, Draft202012Validator
from places import DOCS

from promptlang.grammar.acceptor import accepts
from promptlang.grammar.checking import check_shape
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.notation import to_grammar
from promptlang.grammar.shapes import ContextFree, Schema

PAGE = (DOCS / "grammars.md").read_text(encoding="utf-8")
ARITHMETIC, QUERY, PYTHON = re.findall(r"```lark\n(.*?)```", PAGE, re.DOTALL)
ROWS = [line.split(" | ") for line in PAGE.splitlines() if line.startswith("| `")]
ENFORCED, REFUSED = ([sample for row in ROWS for sample in re.findall(r"`(\{.*?\})`", row[at])] for at in (1, 2))


@pytest.mark.parametrize(
    ("grammar", "good", "bad"),
    [
        (ARITHMETIC, ["1", "1+2*(3-4)/-5", "0.25*((2))"], ["", "1+", "01", "(1", "1 + 1", "a"]),
        (
            QUERY,
            [
                "SELECT * FROM users",
                "SELECT name, age FROM users WHERE age >= 18 AND city = 'Ulm' ORDER BY age DESC LIMIT 5",
                "SELECT a FROM b WHERE c <> 'it''s'",
            ],
            ["SELECT  * FROM users", "DROP TABLE users", "SELECT * FROM users; DROP", "SELECT a FROM b WHERE c = 'x"],
        ),
        (
            PYTHON,
            ["def f():\n    pass\n", 'def add(a, b):\n    c = (a + b) * 2\n    return join("x", c)\n'],
            ["def f():\n", "def if():\n    pass\n", "def f():\n  pass\n", "import os\n", "def f():\n    return\n"],
        ),
    ],
    ids=["arithmetic", "query", "python"],
)
def test_the_grammars_take_what_they_should(grammar: str, good: list[str], bad: list[str]) -> None:
    shape = ContextFree(grammar)
    check_shape(shape)
    for text in good:
        assert accepts(to_grammar(shape, ""), text), text
    for text in bad:
        assert not accepts(to_grammar(shape, ""), text), text


@pytest.mark.parametrize(
    ("grammar", "name"),
    [
        ('start: A\nA.2: "a"', "priority"),
        ('start: x{"a"}\nx{y}: y', "line 2, `x`: a template"),
        ("start: A\n%declare A", "declare"),
        ("start: Y\n%import .other.Y", "other"),
        ('start: A\nA: "a" A | "b"', "refers to itself"),
        ("start: <|im_end|>", "control token"),
        ('x: "a"', "start"),
        ("start: /(?=a)a/", "lookaround"),
        ("start: y", "y"),
    ],
)
def test_what_the_page_says_is_refused_is_refused(grammar: str, name: str) -> None:
    with pytest.raises(ConstraintError, match=name):
        check_shape(ContextFree(grammar))


@pytest.mark.parametrize("schema", ENFORCED)
def test_what_is_listed_as_enforced_compiles(schema: str) -> None:
    check_shape(Schema(schema))


@pytest.mark.parametrize("schema", REFUSED)
def test_what_is_listed_as_refused_is_refused(schema: str) -> None:
    with pytest.raises(ConstraintError):
        check_shape(Schema(schema))


def test_every_keyword_that_constrains_is_in_the_table() -> None:
    listed = {keyword for row in ROWS for keyword in re.findall(r"[$a-zA-Z]+", row[0])}
    known = {*Draft202012Validator.VALIDATORS, *Draft7Validator.VALIDATORS} - {"additionalItems", "$recursiveRef"}
    short = {keyword for keyword in known if keyword.startswith("exclusive")}
    assert known - short <= listed
