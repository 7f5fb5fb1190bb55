"""Typed text falls into statements, and is known to be whole or not."""

import re
from collections.abc import Iterator

import pytest

import promptlang.repl.chunks as module
from promptlang.diagnostics.source import Source, Span
from promptlang.repl.chunks import chunks, is_complete


def test_a_text_falls_into_its_statements() -> None:
    text = 'a = 1\nif a:\n    b = 2\nelse:\n    b = 3\nc = """\nx\n"""\n'
    assert [(line, chunk.split("\n")[0]) for line, chunk in chunks(text)] == [
        (1, "a = 1"),
        (2, "if a:"),
        (6, 'c = """'),
    ]


@pytest.mark.parametrize(
    ("text", "complete"), [("a = 1", True), ("if a:", False), ("if a:\n    b\n", True), ("f(", False), ('"""x', False)]
)
def test_a_block_ends_with_an_empty_line(text: str, complete: bool) -> None:
    assert is_complete(text) is complete


@pytest.mark.parametrize(
    "text", ["a = (\n1)\n", 'a = """\nb = 1\n"""\n', "if a:\n    b\n\n    c\n", "a = 1  # (\n", 'a = "("\n', "a = )\n"]
)
def test_what_belongs_together_stays_together(text: str) -> None:
    assert list(chunks(text + "z = 1\n")) == [(1, text), (text.count("\n") + 1, "z = 1\n")]


def test_a_text_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A string of many lines costs what it holds, not its square."""
    read = []

    class Counting:
        def finditer(self, text: str) -> Iterator[re.Match[str]]:
            read.append(len(text))
            return pattern.finditer(text)

    pattern = module._PART
    monkeypatch.setattr(module, "_PART", Counting())
    text = 'a = """\n' + "b = 1\n" * 5000 + '"""\n'
    assert list(chunks(text)) == [(1, text)]
    assert sum(read) == len(text)


def test_a_part_of_a_text_keeps_its_line_numbers() -> None:
    source = Source("a = 1\nb = nope\n", "<repl>", first_line=4000)
    assert str(Span(source, 10, 14)) == "<repl>:4001:5"
    assert source.line(4001) == "b = nope"
