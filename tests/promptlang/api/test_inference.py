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
