"""Source text, and spans of it."""

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple


class Position(NamedTuple):
    """A place in a source text: `line` and `column`, both counted from 1, columns in characters."""

    line: int
    column: int


@dataclass(frozen=True)
class Source:
    """One source file, or what was typed at a prompt.

    Args:
        text: the program text, as read (a BOM already removed).
        name: what messages call it: a path, or `<repl>`.
        first_line: the number of its first line, where it is a part of a longer text.
    """

    text: str
    name: str = "<string>"
    first_line: int = 1

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(index + 1 for index, char in enumerate(self.text) if char == "\n")]

    def position(self, offset: int) -> Position:
        """Line and column of a character offset into `text`."""
        line = bisect_right(self._line_starts, offset)
        return Position(line - 1 + self.first_line, offset - self._line_starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of line `number`, without its line break."""
        index = number - self.first_line
        start = self._line_starts[index]
        end = self._line_starts[index + 1] if index + 1 < len(self._line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")


@dataclass(frozen=True)
class Span:
    """Characters `start` to `end` (exclusive) of a source."""

    source: Source = field(repr=False, compare=False)
    start: int
    end: int

    @property
    def position(self) -> Position:
        return self.source.position(self.start)

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def first_line(self) -> "Span":
        """The part that stands on the first line."""
        return Span(self.source, self.start, self.start + len(self.text.partition("\n")[0].rstrip("\r")))

    @property
    def first_word(self) -> "Span":
        return Span(self.source, self.start, self.start + len(self.text.split()[0]))

    def __str__(self) -> str:
        line, column = self.position
        return f"{self.source.name}:{line}:{column}"
