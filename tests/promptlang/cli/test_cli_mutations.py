"""Commands that load no model, on programs with accidents: a report or a result, never an exception."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from mutations import mutated_programs
from tiny_engine import tiny_tokenizer

import promptlang.cli.cost as cost
from promptlang.cli.app import execute


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A file for programs; costs are counted with the tiny tokenizer."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(cost, "counting_tokenizer", tiny_tokenizer)
        yield tmp_path_factory.mktemp("mutations") / "program.pl"


@pytest.mark.slow
@pytest.mark.parametrize("command", [["graph"], ["check", "--cost"], ["fmt", "--check"]], ids=" ".join)
@settings(deadline=None)
@given(text=mutated_programs())
def test_a_mutated_program_ends_in_an_exit_code(file: Path, command: list[str], text: str) -> None:
    file.write_bytes(text.encode())
    assert execute([*command, str(file)]) in {0, 1, 2}
