"""String literals: quotes, escapes, dedenting, and where the holes are."""

import re
import unicodedata
from dataclasses import dataclass
from itertools import takewhile

_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "\\": "\\",
    "'": "'",
    '"': '"',
    "$": "$",
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "v": "\v",
}
_SPECIAL = re.compile(
    r"""\\(?: (?P<octal>[0-7]{1,3}) | x(?P<hex>[0-9a-fA-F]{2}) | u(?P<short>[0-9a-fA-F]{4}) | U(?P<long>[0-9a-fA-F]{8})
         | N\{(?P<name>[^{}]*)\} | (?P<other>[\s\S]?) )
      | (?P<hole>\$\{)""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class Hole:
    """An interpolation: where its expression stands in the source."""

    start: int
    end: int


@dataclass(frozen=True)
class BadEscape:
    """An escape that means nothing: where it stands, and whether it stands for itself (`\\d`) or is an error
    (`\\x4`)."""

    start: int
    end: int
    stands_for_itself: bool


@dataclass(frozen=True)
class StringLiteral:
    """What a literal says: text (escapes resolved, dedented) and holes in order, and its bad escapes."""

    parts: tuple[str | Hole, ...]
    bad_escapes: tuple[BadEscape, ...]


def read_string(text: str, start: int, end: int) -> StringLiteral:
    """Read the literal that stands at `text[start:end]`, quotes included."""
    is_raw = text[start] == "r"
    opening = start + is_raw
    quotes = 3 if text[opening : opening + 3] in ('"""', "'''") else 1
    lines = _lines(text, opening + quotes, end - quotes)
    if quotes == 3:
        lines = _dedented(text, lines)
    return _Reader(text, is_raw).read(lines)


def _lines(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """The lines of a stretch as (start, end), line breaks left out."""
    lines = []
    for line in text[start:end].split("\n"):
        lines.append((start, start + len(line.removesuffix("\r"))))
        start += len(line) + 1
    return lines


def _dedented(text: str, lines: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The lines without their common indentation, and without blank ones next to the quotes.

    A line that begins right after the opening quotes has no indentation, so it doesn't take part.
    """
    first, *rest = lines
    if rest and _is_blank(text, rest[-1]):
        rest = rest[:-1]
    margin = _common_length([_indentation(text, line) for line in rest if not _is_blank(text, line)])
    moved = [(end if _is_blank(text, (start, end)) else start + margin, end) for start, end in rest]
    return moved if _is_blank(text, first) and len(lines) > 1 else [first, *moved]


def moved(literal: str, old: str, new: str) -> str:
    """A literal of several lines after the line it starts on has been indented anew.

    Its lines move along where they stand at least as deep as that line; what it says stays the same.

    Args:
        literal: the literal, quotes included.
        old: the indentation of the line it started on.
        new: the indentation of that line now; tabs in what is deeper become four spaces.
    """
    first, *rest = literal.split("\n")
    if not rest or first.removeprefix("r")[:3] not in ('"""', "'''"):
        return literal
    rest[-1], quotes = rest[-1][:-3], rest[-1][-3:]
    indentations = [_indentation(line, (0, len(line))) for line in rest]
    blank = [not line.removesuffix("\r").strip(" \t") for line in rest]
    texts = [indentation for indentation, is_blank in zip(indentations, blank, strict=True) if not is_blank]
    common = texts[0][: _common_length(texts)] if texts else old
    if not common.startswith(old):
        return literal
    margin = new + _spaces(common.removeprefix(old))
    lines = [line if is_blank else margin + line[len(common) :] for line, is_blank in zip(rest, blank, strict=True)]
    if blank[-1] and rest[-1].startswith(old):
        lines[-1] = new + _spaces(rest[-1].removeprefix(old))
    return "\n".join([first, *lines]) + quotes


def _spaces(indentation: str) -> str:
    return indentation.replace("\t", "    ")


def _common_length(texts: list[str]) -> int:
    """How many characters all texts begin with alike."""
    columns = zip(*texts, strict=False)
    return sum(1 for _ in takewhile(lambda column: len(set(column)) == 1, columns))


def _is_blank(text: str, line: tuple[int, int]) -> bool:
    return not text[slice(*line)].strip(" \t")


def _indentation(text: str, line: tuple[int, int]) -> str:
    content = text[slice(*line)]
    return content[: len(content) - len(content.lstrip(" \t"))]


class _Reader:
    """Turns lines of source into parts."""

    def __init__(self, text: str, is_raw: bool) -> None:
        self._text = text
        self._is_raw = is_raw
        self._parts: list[str | Hole] = []
        self._pieces: list[str] = []
        self._bad: list[BadEscape] = []

    def read(self, lines: list[tuple[int, int]]) -> StringLiteral:
        for number, (start, end) in enumerate(lines):
            joins_next = self._line(start, end)
            if number < len(lines) - 1 and not joins_next:
                self._pieces.append("\n")
        self._end_text()
        return StringLiteral(tuple(self._parts), tuple(self._bad))

    def _line(self, start: int, end: int) -> bool:
        """Read one line; whether it ends in a backslash, and so goes on."""
        while not self._is_raw and (found := _SPECIAL.search(self._text, start, end)):
            self._pieces.append(self._text[start : found.start()])
            start = found.end()
            if found["hole"]:
                closing = _hole_end(self._text, start)
                self._end_text()
                self._parts.append(Hole(start, closing))
                start = closing + 1
            elif found["other"] == "":
                return True
            else:
                self._pieces.append(self._escaped(found))
        self._pieces.append(self._text[start:end])
        return False

    def _end_text(self) -> None:
        text = "".join(self._pieces)
        self._pieces = []
        if text:
            self._parts.append(text)

    def _escaped(self, found: re.Match[str]) -> str:
        if found["other"] is not None:
            if found["other"] in _ESCAPES:
                return _ESCAPES[found["other"]]
            self._bad.append(BadEscape(found.start(), found.end(), found["other"] not in "xuUN"))
            return found[0]
        try:
            if found["name"] is not None:
                return unicodedata.lookup(found["name"])
            code = (
                int(found["octal"], 8) if found["octal"] else int(found["hex"] or found["short"] or found["long"], 16)
            )
            return chr(code).encode().decode()
        except (KeyError, ValueError, OverflowError):
            self._bad.append(BadEscape(found.start(), found.end(), False))
            return found[0]


def _hole_end(text: str, position: int) -> int:
    """Where the brace stands that closes the hole whose expression starts at `position`."""
    depth = 1
    while True:
        char = text[position]
        if char in "\"'":
            position = _string_end(text, position)
            continue
        depth += (char == "{") - (char == "}")
        if depth == 0:
            return position
        position += 1


def _string_end(text: str, position: int) -> int:
    """Right after the string that starts at `position`, inside a hole."""
    quote = text[position]
    position += 1
    while text[position] != quote:
        if text.startswith("${", position):
            position = _hole_end(text, position + 2)
        position += 2 if text[position] == "\\" else 1
    return position + 1
