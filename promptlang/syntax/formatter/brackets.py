"""A line's words as a tree of brackets: where white space stands, and where the line may be broken."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal, TypeAlias

from promptlang.syntax.formatter.lines import Word

_OPENING = {"LPAR", "LSQB", "LBRACE"}
_CLOSING = {"RPAR", "RSQB", "RBRACE"}
_SIGNS = {"PLUS", "MINUS"}
_NEVER_SPACED = {"DOT", "RANGE"}
_OPERANDS = {"NAME", "INT", "FLOAT", "STRING", "_TRUE", "_FALSE", "_NONE", "_GEN", "_SELECT", "_SCORE", *_CLOSING}

# Brackets without commas are broken before their loosest operators.
_LOOSENESS = [
    {"_FOR"},
    {"_IF", "_ELSE"},
    {"OR"},
    {"AND"},
    {"EQUAL", "UNEQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"},
    {"VBAR"},
    _SIGNS,
    {"STAR", "SLASH", "DOUBLE_SLASH", "PERCENT"},
]

Kind: TypeAlias = Literal["line", "group", "call", "display", "subscript"]
"""What brackets are: the whole line (without any), `(a + b)`, `f(a)`, `[a]` and `{a: b}`, `x[a]`."""


@dataclass(frozen=True)
class Leaf:
    """A word.

    Attributes:
        is_spaced: whether white space stands before it where the line goes on.
    """

    word: Word
    is_spaced: bool

    @property
    def width(self) -> int:
        """In characters, to its first line break."""
        return len(self.word.text.partition("\n")[0])

    @property
    def is_long(self) -> bool:
        return self.word.is_long


@dataclass(frozen=True)
class Bracket:
    """Brackets that may be broken, and what stands in them.

    Attributes:
        items: what stands between two places where it may be broken.
        takes_comma: whether a comma may be added after the last item.
        must_break: whether it has to be broken: it holds a comment, or a comma after its last item.
        width: in characters, up to the first line break inside, when it isn't broken.
        is_long: whether a string of several lines stands inside.
    """

    opening: Leaf
    items: tuple[tuple["Part", ...], ...]
    closing: Leaf
    takes_comma: bool
    must_break: bool
    width: int
    is_long: bool

    @property
    def is_spaced(self) -> bool:
        return self.opening.is_spaced


Part: TypeAlias = Leaf | Bracket


def first_word(part: Part) -> Word:
    """The word that a part begins with."""
    return part.word if isinstance(part, Leaf) else part.opening.word


def width_of(parts: Iterable[Part]) -> tuple[int, bool]:
    """How wide parts are side by side, up to the first line break inside them; whether there is one."""
    width = 0
    for part in parts:
        width += part.is_spaced + part.width
        if part.is_long:
            return width, True
    return width, False


def tree_of(words: Sequence[Word]) -> tuple[Part, ...]:
    """A line as a tree of the brackets that may be broken.

    Brackets of subscripts and empty ones are broken only where comments stand in them; else they are plain words.
    """
    builder = _Builder()
    for word in words:
        builder.take(word)
    return tuple(builder.content)


@dataclass
class _Open:
    """Brackets that are not closed yet.

    Attributes:
        content: what stands in them so far.
        commas: which parts of that are commas between items.
        operators: which parts are operators, by how loose they are.
        has_comments: whether a comment stands directly in them.
        has_colon: whether a colon has come since the last comma.
        in_targets: whether a `for` waits for its `in`: commas between them are no commas between items.
    """

    kind: Kind
    opening: Leaf | None
    content: list[Part] = field(default_factory=list)
    commas: list[int] = field(default_factory=list)
    operators: dict[int, list[int]] = field(default_factory=dict)
    has_comments: bool = False
    has_colon: bool = False
    in_targets: bool = False

    @property
    def is_tight(self) -> bool:
        """Whether no white space stands around `=`: where it gives an argument or an option by its name."""
        if self.kind != "line":
            return not self.has_colon
        start = [first_word(part).type for part in self.content[:2]]
        return start[0] == "_BEAM" and start[1:] not in ([], ["ASSIGN"])

    @property
    def is_list(self) -> bool:
        """Whether items stand in them that may each be followed by a comma."""
        return bool(self.commas) or (self.kind in {"call", "display"} and 0 not in self.operators)

    @property
    def breaks(self) -> list[int]:
        """Before which parts the content may be broken."""
        if self.is_list:
            return [number + 1 for number in self.commas]
        return self.operators[min(self.operators)] if self.operators else []

    @property
    def items(self) -> tuple[tuple[Part, ...], ...]:
        edges = sorted({0, *self.breaks, len(self.content)})
        return tuple(tuple(self.content[start:end]) for start, end in pairwise(edges))

    def note(self, word: Word, is_sign: bool) -> None:
        """Look at the word that comes next in the content."""
        match word.type:
            case "COMMA" if not self.in_targets:
                self.commas.append(len(self.content))
                self.has_colon = False
            case "COLON":
                self.has_colon = True
            case "_FOR":
                self.in_targets = True
            case "_IN":
                self.in_targets = False
        looseness = next((number for number, types in enumerate(_LOOSENESS) if word.type in types), None)
        if looseness is not None and not is_sign:
            in_loop = word.type == "_IF" and 0 in self.operators
            self.operators.setdefault(0 if in_loop else looseness, []).append(len(self.content))

    def closed(self, closing: Leaf) -> list[Part]:
        """What they become in the brackets around them."""
        assert self.opening is not None
        ends_in_comma = bool(self.commas) and self.commas[-1] == len(self.content) - 1
        holds_broken = any(isinstance(part, Bracket) and part.must_break for part in self.content)
        must_break = self.has_comments or (self.kind != "subscript" and (ends_in_comma or holds_broken))
        if not must_break and (self.kind == "subscript" or not self.content):
            return [self.opening, *self.content, closing]
        takes_comma = self.is_list and self.kind != "subscript" and bool(self.content) and not ends_in_comma
        width, is_long = width_of([self.opening, *self.content, closing])
        width -= self.opening.is_spaced
        return [Bracket(self.opening, self.items, closing, takes_comma, must_break, width, is_long)]


class _Builder:
    """Takes the words of a line in order."""

    def __init__(self) -> None:
        self._open = [_Open("line", None)]
        self._previous: Word | None = None
        self._is_after_sign = False

    @property
    def content(self) -> list[Part]:
        return self._open[0].content

    def take(self, word: Word) -> None:
        inner = self._open[-1]
        inner.has_comments = inner.has_comments or word.before.has_comments
        leaf = Leaf(word, self._is_spaced(word))
        is_sign = word.type in _SIGNS and not self._is_after_operand
        if word.type in _OPENING:
            self._open.append(_Open(self._kind(word), leaf))
        elif word.type in _CLOSING:
            self._open.pop()
            self._open[-1].content += inner.closed(leaf)
        else:
            inner.note(word, is_sign)
            inner.content.append(leaf)
        self._previous = word
        self._is_after_sign = is_sign

    @property
    def _is_after_operand(self) -> bool:
        return self._previous is not None and self._previous.type in _OPERANDS

    def _kind(self, word: Word) -> Kind:
        if word.type == "LPAR":
            return "call" if self._is_after_operand else "group"
        return "subscript" if word.type == "LSQB" and self._is_after_operand else "display"

    def _is_spaced(self, word: Word) -> bool:
        inner, previous = self._open[-1], self._previous
        if previous is None or previous.type in _OPENING or self._is_after_sign:
            return False
        if word.type in {"COMMA", "COLON", *_CLOSING} or _NEVER_SPACED & {word.type, previous.type}:
            return False
        if previous.type == "COLON":
            return inner.kind != "subscript"
        if "ASSIGN" in (word.type, previous.type):
            return not inner.is_tight
        return word.type not in {"LPAR", "LSQB"} or not self._is_after_operand
