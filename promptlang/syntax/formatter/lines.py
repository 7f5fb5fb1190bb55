"""A file as lines: the words of each statement, and the comments around them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lark import Token

_BLANK = " \t\f\r"


@dataclass(frozen=True)
class Comment:
    """A comment on a line of its own.

    Attributes:
        text: from its `#` on.
        indentation: the white space before it.
        blank_lines: how many blank lines stand before it.
        depth: how many blocks it stands in.
    """

    text: str
    indentation: str
    blank_lines: int
    depth: int = 0


@dataclass(frozen=True)
class Gap:
    """What stands between two words.

    Attributes:
        trailing: the comment that ends the line of the first word.
        comments: the lines of comments.
        blank_lines: how many blank lines stand before the second word.
        indentation: the white space before the second word, on its line.
    """

    trailing: str | None
    comments: tuple[Comment, ...]
    blank_lines: int
    indentation: str

    @property
    def has_comments(self) -> bool:
        return self.trailing is not None or bool(self.comments)


@dataclass(frozen=True)
class Word:
    """A token.

    Attributes:
        type: its terminal in the grammar.
        text: as it stands in the source.
        before: what stands before it.
        margin: for a string of several lines: the white space that the line it starts on begins with.
    """

    type: str
    text: str
    before: Gap
    margin: str

    @property
    def is_long(self) -> bool:
        """Whether it is a string of several lines."""
        return "\n" in self.text


@dataclass(frozen=True)
class Line:
    """A statement, a declaration or the head of one, however many lines of text its brackets take.

    Attributes:
        depth: how many blocks it stands in.
        before: what stands between the line before and this one.
        words: its tokens; none for the end of the file.
    """

    depth: int
    before: Gap
    words: tuple[Word, ...]

    @property
    def has_body(self) -> bool:
        """Whether it begins a declaration with a body."""
        return bool(self.words) and self.words[0].type in {"_PROGRAM", "_FRAGMENT", "_RECORD"}


def lines_of(text: str, tokens: Iterable[Token]) -> list[Line]:
    """A file's lines, and the end of the file as a line without words.

    Args:
        text: the file's text.
        tokens: its tokens, with those of layout.
    """
    lines: list[Line] = []
    words: list[Word] = []
    blocks = [""]
    depth = end = 0
    for token in tokens:
        if token.type == "_INDENT":
            depth += 1
        elif token.type == "_DEDENT":
            depth -= 1
        elif token.type == "_NEWLINE" and words:
            lines.append(_line(depth, words, blocks))
            words = []
        elif token.type not in {"_NEWLINE", "$END"}:
            words.append(_word(text, token, end))
            end = token.end_pos or 0
    last = Word("$END", "", _gap(text, end, len(text)), "")
    return [*lines, replace(_line(0, [last], blocks), words=())]


def _word(text: str, token: Token, end: int) -> Word:
    """A word, and what stands between it and the word that ends at `end`."""
    start = token.start_pos or 0
    line_start = text.rfind("\n", 0, start) + 1 if "\n" in token else start
    return Word(token.type, str(token), _gap(text, end, start), _indentation(text[line_start:start]))


def _gap(text: str, start: int, end: int) -> Gap:
    """Read what stands between two words. The start and the end of a file count as line breaks."""
    trailing, *lines = f"{'' if start else chr(10)}{text[start:end]}{'' if end < len(text) else chr(10)}".split("\n")
    *own, last = lines or [""]
    comments: list[Comment] = []
    blank_lines = 0
    for line in own:
        if line.strip(_BLANK):
            comments.append(Comment(line.strip(_BLANK), _indentation(line), blank_lines))
            blank_lines = 0
        else:
            blank_lines += 1
    return Gap(trailing.strip(_BLANK) or None, tuple(comments), blank_lines, _indentation(last))


def _indentation(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t\f"))].rpartition("\f")[2]


def _line(depth: int, words: Sequence[Word], blocks: list[str]) -> Line:
    """A line, with the depth of each comment above it.

    Args:
        depth: its own.
        words: its words.
        blocks: the indentation of each block that was open at the line before; of those open at this one, afterwards.
    """
    before = words[0].before
    comments = before.comments
    documenting = _documenting(before) if depth == 0 else 0
    placed = [
        replace(comment, depth=depth if number >= len(comments) - documenting else _depth(comment, depth, blocks))
        for number, comment in enumerate(comments)
    ]
    blocks[depth:] = [before.indentation]
    return Line(depth, replace(before, comments=tuple(placed)), tuple(words))


def _documenting(before: Gap) -> int:
    """How many of the last comments document what comes next: `##` lines right above it."""
    count = 0
    blank_lines = before.blank_lines
    for comment in reversed(before.comments):
        if blank_lines or not comment.text.startswith("##"):
            break
        count += 1
        blank_lines = comment.blank_lines
    return count


def _depth(comment: Comment, depth: int, blocks: Sequence[str]) -> int:
    """How deep a comment stands before a line of this depth: in the deepest block open until then whose indentation
    it has."""
    deeper = range(len(blocks) - 1, depth, -1)
    return next((level for level in deeper if comment.indentation.startswith(blocks[level])), depth)
