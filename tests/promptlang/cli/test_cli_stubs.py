"""`promptlang stubs`, and what `check` says of a stub that is stale."""

from collections.abc import Callable
from pathlib import Path

import pytest
from user_checks import strictly_checked

Command = Callable[..., tuple[int, str, str]]

SHOP = """
record Line:
    text: str
"""

SUPPORT = """
import "shop.pl" as shop

## A line of an order.
record Line:
    item: str
    count: int in 1..9 = 1
    class: "a" | "b"

record Tree:
    name: str
    left: Tree | none

record Answer:
    lines: list[shop.Line]
    trees: dict[str, Tree]
    score: float | none

## Says which team owns a ticket.
program main(ticket: str, line: Line = Line("tea", class="a"), tone: "kind" | "cold" = "kind") -> Answer:
    "${ticket} ${line} ${tone}"
    return Answer([], {}, 0.5)

program other(from: str, n: int in 1..4):
    "${from} ${n}"

program late(some: int = 1, needed: int):
    "${some} ${needed}"
"""

USER = """
from typing import TYPE_CHECKING, Literal, assert_type

import promptlang as pl

if TYPE_CHECKING:
    from support_pl import Answer, Line, Tree, late, main, other
else:
    main = pl.load("support.pl")

answer = main(ticket="a", tone="cold")
assert_type(answer, Answer)
assert_type(answer.lines[0].text, str)
assert_type(answer.trees, dict[str, Tree])
assert_type(answer.score, float | None)
assert_type(main.run("a", Line("tea", class_="a")).result, Answer)
assert_type(main.using(seed=1)("a"), Answer)
for row in main.batch([{"ticket": "a"}]):
    assert_type(row, Answer)
assert_type(Line("tea", 2, class_="b").class_, Literal["a", "b"])
print(answer.to_dict(), other(n=1), late(1, needed=2))
"""


@pytest.fixture
def support(tmp_path: Path) -> Path:
    (tmp_path / "shop.pl").write_text(SHOP, encoding="utf-8")
    file = tmp_path / "support.pl"
    file.write_text(SUPPORT, encoding="utf-8")
    return file


def test_the_stub_lies_beside_the_file(command: Command, support: Path) -> None:
    stub = support.with_name("support_pl.pyi")
    assert command("stubs", str(support)) == (0, f"{stub}\n", "")
    assert "def main(" in stub.read_text(encoding="utf-8")


def test_check_warns_of_a_stale_stub_alone(command: Command, support: Path) -> None:
    command("stubs", str(support))
    assert "PL601" not in command("check", str(support))[1]

    support.write_text(SUPPORT.replace('"${ticket} ', '"A ticket: ${ticket} '), encoding="utf-8")
    assert "PL601" not in command("check", str(support))[1]

    (support.parent / "shop.pl").write_text(SHOP.replace("text", "words"), encoding="utf-8")
    code, out, _ = command("check", str(support))
    assert code == 0
    assert "PL601: type checkers are told what this file said before: `support_pl.pyi`" in out

    command("stubs", str(support))
    assert "PL601" not in command("check", str(support))[1]


def test_a_stub_that_was_laid_out_anew_is_not_stale(command: Command, support: Path) -> None:
    command("stubs", str(support))
    stub = support.with_name("support_pl.pyi")
    stub.write_text(stub.read_text(encoding="utf-8").replace("'", '"').replace(", tone", ",\n    tone"), "utf-8")
    assert "PL601" not in command("check", str(support))[1]


def test_work_of_others_is_not_written_over(command: Command, support: Path) -> None:
    stub = support.with_name("support_pl.pyi")
    stub.write_text("x: int\n", encoding="utf-8")
    code, out, error = command("stubs", str(support))
    assert (code, out) == (2, "")
    assert "is no stub of" in error
    assert stub.read_text(encoding="utf-8") == "x: int\n"
    assert "PL601" not in command("check", str(support))[1]


def test_files_with_errors_and_without_programs_have_no_stub(command: Command, support: Path) -> None:
    support.write_text("program p():\n    log nothing\n", encoding="utf-8")
    code, _, error = command("stubs", str(support))
    assert code == 2
    assert "PL101" in error
    support.write_text("record R:\n    a: int\n", encoding="utf-8")
    code, _, error = command("stubs", str(support))
    assert code == 2
    assert "no program" in error
    assert not support.with_name("support_pl.pyi").exists()


@pytest.mark.slow
def test_type_checkers_read_it(command: Command, support: Path) -> None:
    command("stubs", str(support))
    user = support.with_name("user.py")
    user.write_text(USER, encoding="utf-8")
    assert strictly_checked(user, support.parent) == []
    assert strictly_checked(support.with_name("support_pl.pyi"), support.parent) == []
    user.write_text(USER + "main(ticket=1)\nmain()\nlate(1, 2)\n", encoding="utf-8")
    assert len(strictly_checked(user, support.parent)) == 3
