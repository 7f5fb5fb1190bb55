"""Lines as text: indentation, blank lines, comments, and brackets that are broken where a line is too long.

A bracket is broken when what stands between the last break and the next possible one doesn't fit, as in Oppen,
"Prettyprinting" (1980); widths are known beforehand, so the time is linear.
"""

from collections.abc import Iterable, Sequence

from promptlang.syntax.formatter.brackets import Bracket, Leaf, Part, first_word, tree_of
from promptlang.syntax.formatter.lines import Gap, Line, Word
from promptlang.syntax.strings import moved

WIDTH = 100
_STEP = 4


class Printer:
    """Prints one file."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._column = 0
        self._margin = ""

    def file(self, lines: Iterable[Line]) -> str:
        """The text of all lines."""
        previous = None
        for line in lines:
            self._between(previous, line)
            self._parts(tree_of(line.words), line.depth * _STEP, 0)
            previous = line
        return "".join([*self._pieces, "\n"] if self._pieces else [])

    # Lines -------------------------------------------------------------------------------------------

    def _between(self, previous: Line | None, line: Line) -> None:
        """End a line, print the comments after it, and begin the next one."""
        *above, before = blank_lines(previous, line)
        self._trailing(line.before)
        for comment, blank in zip(line.before.comments, above, strict=True):
            self._break(comment.depth * _STEP, blank)
            self._write(comment.text)
        if line.words:
            self._break(line.depth * _STEP, before)

    def _trailing(self, gap: Gap) -> None:
        if gap.trailing is not None:
            self._write(f"  {gap.trailing}")

    def _break(self, indentation: int, blank: int = 0) -> None:
        """Begin a line after this many blank ones."""
        self._margin = " " * indentation
        self._column = indentation
        self._pieces.append("\n" * (blank + 1) + self._margin if self._pieces else self._margin)

    def _write(self, text: str) -> None:
        self._pieces.append(text)
        self._column += len(text)

    # Inside a line -----------------------------------------------------------------------------------

    def _parts(self, parts: Sequence[Part], indentation: int, after: int) -> None:
        """Print parts side by side, from a place where a line has begun.

        Args:
            parts: what to print.
            indentation: of the line.
            after: how many characters follow on the last line.
        """
        for number, (part, rest) in enumerate(zip(parts, _rests(parts, after), strict=True)):
            if number and first_word(part).before.has_comments:
                self._commented_break(first_word(part).before, indentation + _STEP, indentation + _STEP)
            elif number and part.is_spaced:
                self._write(" ")
            if isinstance(part, Bracket) and self._is_broken(part, rest):
                self._broken(part, indentation)
            else:
                self._side_by_side(part)

    def _is_broken(self, bracket: Bracket, rest: int) -> bool:
        width = bracket.width + (0 if bracket.is_long else rest)
        return bracket.must_break or self._column + width > WIDTH

    def _broken(self, bracket: Bracket, indentation: int) -> None:
        """Print each item on a line of its own."""
        self._word(bracket.opening.word)
        inside = indentation + _STEP
        for number, item in enumerate(bracket.items):
            self._commented_break(first_word(item[0]).before, inside, inside, is_first=number == 0)
            self._parts(item, inside, int(bracket.takes_comma))
        if bracket.takes_comma:
            self._write(",")
        self._commented_break(bracket.closing.word.before, inside, indentation, is_last=True)
        self._word(bracket.closing.word)

    def _commented_break(
        self, before: Gap, outside: int, indentation: int, *, is_first: bool = False, is_last: bool = False
    ) -> None:
        """Begin a line inside brackets, after the comments that stand there.

        Args:
            before: what stands before the next word.
            outside: the indentation of the comments.
            indentation: that of the next word.
            is_first: whether the brackets have just been opened.
            is_last: whether they are about to be closed.
        """
        self._trailing(before)
        for number, comment in enumerate(before.comments):
            self._break(outside, 0 if is_first and number == 0 else min(comment.blank_lines, 1))
            self._write(comment.text)
        keeps_blank = not is_last and (not is_first or before.comments)
        self._break(indentation, min(before.blank_lines, 1) if keeps_blank else 0)

    def _side_by_side(self, part: Part) -> None:
        if isinstance(part, Leaf):
            self._word(part.word)
            return
        self._word(part.opening.word)
        inside = [inner for item in part.items for inner in item]
        for number, inner in enumerate(inside):
            if number and inner.is_spaced:
                self._write(" ")
            self._side_by_side(inner)
        self._word(part.closing.word)

    def _word(self, word: Word) -> None:
        if not word.is_long:
            self._write(word.text)
            return
        text = moved(word.text, word.margin, self._margin)
        last = text.rpartition("\n")[2]
        self._pieces.append(text)
        self._column = len(last)
        self._margin = last[: len(last) - len(last.lstrip(" \t"))]


def _rests(parts: Sequence[Part], after: int) -> list[int]:
    """How many characters follow each part, up to where the line may be broken next."""
    rests = []
    for part in reversed(parts):
        rests.append(after)
        if first_word(part).before.has_comments:
            after = 0
        elif isinstance(part, Bracket):
            after = part.is_spaced + len(part.opening.word.text)
        else:
            after = part.is_spaced + part.width + (0 if part.is_long else after)
    return rests[::-1]


def blank_lines(previous: Line | None, line: Line) -> list[int]:
    """How many blank lines stand before each comment between two lines, and before the second line.

    Inside a block at most one, and none at its start. At the top two between declarations of which one has a body
    (above the comments right above it), else at most two.
    """
    written = [*(comment.blank_lines for comment in line.before.comments), line.before.blank_lines]
    depths = [*(comment.depth for comment in line.before.comments), line.depth]
    attached = next((number for number in range(len(written) - 1, 0, -1) if written[number]), 0)
    attached = max(attached, depths.index(line.depth) if line.depth == 0 else 0)
    counts = []
    for number, (blank, depth) in enumerate(zip(written, depths, strict=True)):
        is_first_at_top = depth == 0 and 0 not in depths[:number]
        if number == 0 and (previous is None or previous.depth < line.depth):
            counts.append(0)
        elif depth:
            counts.append(min(blank, 1))
        elif (line.words and is_first_at_top and _ends_body(previous)) or (number == attached and line.has_body):
            counts.append(2)
        else:
            counts.append(min(blank, 2))
    return counts


def _ends_body(line: Line | None) -> bool:
    return line is not None and (line.depth > 0 or line.has_body)
