"""What mypy infers of a user's file."""

import runpy
from pathlib import Path

import pytest
from user_checks import strictly_checked

HERE = Path(__file__).parent


def test_the_file_runs() -> None:
    runpy.run_path(str(HERE / "typed_user.py"))


@pytest.mark.slow
def test_mypy_infers_the_types_of_answers(tmp_path: Path) -> None:
    assert strictly_checked(HERE / "typed_user.py", tmp_path) == []


@pytest.mark.slow
def test_mypy_refuses_what_is_no_type(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from promptlang.api.types import answer_type\n\nanswer_type(3)\n", encoding="utf-8")
    (error,) = strictly_checked(wrong, tmp_path)
    assert error.startswith("3:")


METHODS = """
from typing import assert_type

import promptlang as pl


class Desk:
    @pl.program
    def reply(self, p: pl.Prompt, ticket: str, stars: int = 3) -> tuple[str, int]:
        p.user(ticket)
        with p.assistant():
            return p.gen(max_tokens=4), stars

    @pl.program
    async def later(self, p: pl.AsyncPrompt, ticket: str) -> int:
        return await p.gen(int)

    @staticmethod
    @pl.program
    def alone(p: pl.Prompt, ticket: str) -> str:
        return p.gen(max_tokens=4)


desk = Desk()


def use() -> None:
    assert_type(desk.reply("late"), tuple[str, int])
    assert_type(desk.reply(ticket="late", stars=4), tuple[str, int])
    assert_type(desk.reply.run("late").result, tuple[str, int])
    assert_type(desk.alone("late"), str)


async def wait() -> None:
    assert_type(await desk.later("late"), int)
"""


@pytest.mark.slow
def test_mypy_knows_programs_in_classes_by_their_own_parameters(tmp_path: Path) -> None:
    file = tmp_path / "methods.py"
    file.write_text(METHODS, encoding="utf-8")
    assert strictly_checked(file, tmp_path) == []
    file.write_text(METHODS + "\n\nDesk().reply(3)\ndesk.reply(p=1)\n", encoding="utf-8")
    lines = {error.split(":")[0] for error in strictly_checked(file, tmp_path)}
    assert len(lines) == 2
