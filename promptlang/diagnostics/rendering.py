"""What is wrong with a program, where, and what would put it right."""

import json
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from promptlang.diagnostics.source import Span

if TYPE_CHECKING:
    from rich.console import Console

TAB_WIDTH = 4

_PAGES = Path(__file__).parent / "codes"


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Diagnostic:
    """One finding.

    Attributes:
        code: stable, `PL000` to `PL699`; `explain` has its page.
        message: what is wrong, in one sentence.
        span: where.
        severity: errors keep a program from running.
        fix: what would put it right, where that is known.
        notes: further sentences, each with a place or None.
    """

    code: str
    message: str
    span: Span
    severity: Severity = Severity.ERROR
    fix: str | None = None
    notes: tuple[tuple[str, Span | None], ...] = ()

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR


def near(word: str, words: Iterable[str]) -> list[str]:
    """At most three of `words` that `word` may be a misspelling of, the likeliest first."""
    candidates = sorted({other for other in words if other != word})
    by_lower = {other.lower(): other for other in reversed(candidates)}
    cutoff = 0.6 if len(word) > 3 else 0.66
    return [by_lower[match] for match in get_close_matches(word.lower(), by_lower, n=3, cutoff=cutoff)]


def did_you_mean(word: str, words: Iterable[str]) -> str | None:
    """A fix that names the near words; None where there are none."""
    found = [f"`{other}`" for other in near(word, words)]
    if not found:
        return None
    listed = found[0] if len(found) == 1 else f"{', '.join(found[:-1])} or {found[-1]}"
    return f"did you mean {listed}?"


# Rendering -------------------------------------------------------------------------------------------


def render(diagnostic: Diagnostic) -> str:
    """A diagnostic as text: code, place, message, the source line with the span underlined, the fix and the notes.
    What a terminal would obey is replaced."""
    lines = [f"{diagnostic.span}: {diagnostic.severity} {diagnostic.code}: {diagnostic.message}"]
    lines += excerpt(diagnostic.span)
    if diagnostic.fix is not None:
        lines.append(f"  fix: {diagnostic.fix}")
    for note, place in diagnostic.notes:
        lines.append(f"  note: {note}" if place is None else f"  note: {place}: {note}")
    return "\n".join(visible(line) for text in lines for line in text.split("\n"))


def render_all(diagnostics: Sequence[Diagnostic]) -> str:
    """All diagnostics and a closing line that counts them."""
    errors = sum(diagnostic.is_error for diagnostic in diagnostics)
    counts = [_count(errors, "error"), _count(len(diagnostics) - errors, "warning")]
    return "\n\n".join([*map(render, diagnostics), ", ".join(count for count in counts if count)]) + "\n"


def print_all(diagnostics: Sequence[Diagnostic], console: "Console") -> None:
    """Write diagnostics to a rich console, in colour where it has any."""
    from rich.text import Text

    for line in render_all(diagnostics).splitlines():
        text = Text(line, no_wrap=True, overflow="ignore")
        text.highlight_regex(r"(?<=: )error PL\d+(?=:)", "bold red")
        text.highlight_regex(r"(?<=: )warning PL\d+(?=:)", "bold yellow")
        text.highlight_regex(r"^ +\| +\^+$", "red")
        text.highlight_regex(r"^  fix:.*", "green")
        console.print(text, soft_wrap=True)


def to_json(diagnostics: Sequence[Diagnostic]) -> str:
    """Diagnostics as a JSON list of objects; lines and columns count from 1, columns in characters."""
    return json.dumps([_as_dict(diagnostic) for diagnostic in diagnostics], ensure_ascii=False, indent=2)


def _as_dict(diagnostic: Diagnostic) -> dict[str, object]:
    start, end = diagnostic.span.position, diagnostic.span.source.position(diagnostic.span.end)
    return {
        "code": diagnostic.code,
        "severity": str(diagnostic.severity),
        "message": diagnostic.message,
        "file": diagnostic.span.source.name,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "fix": diagnostic.fix,
        "notes": [
            {"message": note, "place": None if place is None else str(place)} for note, place in diagnostic.notes
        ],
    }


def excerpt(span: Span) -> list[str]:
    """The line where a span begins, and under it a mark: two lines of text."""
    line, column = span.position
    source_line = span.source.line(line)
    width = max(1, min(span.end - span.start, len(source_line) - column + 1))
    before, marked = source_line[: column - 1], source_line[column - 1 : column - 1 + width]
    number = str(line)
    start = _width(visible(before))
    mark = " " * start + "^" * max(1, _width(visible(marked, start)))
    return [f"  {number} | {visible(source_line)}", f"  {' ' * len(number)} | {mark}"]


def visible(text: str, column: int = 0) -> str:
    """Text as a terminal may show it: tabs spread out, other control characters and line breaks replaced.

    Args:
        text: what to show.
        column: where it begins, for its tabs.
    """
    pieces = []
    for char in text:
        piece = (
            " " * (TAB_WIDTH - column % TAB_WIDTH)
            if char == "\t"
            else char
            if char.isprintable()
            else "\N{REPLACEMENT CHARACTER}"
        )
        pieces.append(piece)
        column += _width(piece)
    return "".join(pieces)


def _width(text: str) -> int:
    """The columns that visible text takes on a terminal."""
    shown = [
        char for char in text if not unicodedata.combining(char) and unicodedata.category(char) not in ("Mn", "Me")
    ]
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in shown)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}" if number else ""


# Explanations ----------------------------------------------------------------------------------------


def explain(code: str) -> str:
    """The page of a code.

    Raises:
        KeyError: there is no such code.
    """
    page = _PAGES / f"{code.upper()}.md"
    if not code.isalnum() or not page.is_file():
        raise KeyError(code)
    return page.read_text(encoding="utf-8")


def codes() -> list[str]:
    """All codes, in order."""
    return sorted(page.stem for page in _PAGES.glob("*.md"))
