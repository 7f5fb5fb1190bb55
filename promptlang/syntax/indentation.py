"""Line breaks and indentation, as blocks have them."""

from collections.abc import Iterator

from lark import Token
from lark.lark import PostLex

from promptlang.syntax.limits import MOST_NESTING

_OPENING = {"LPAR", "LSQB", "LBRACE"}
_CLOSING = {"RPAR", "RSQB", "RBRACE"}


class Indentation(PostLex):
    """Indentation to tokens: line breaks inside brackets vanish, deeper and shallower lines become _INDENT
    and _DEDENT.

    Attributes:
        blocks: the indentations of each open block, outermost first (a block has several where a line was out
            of step).
        brackets: the brackets that are open.
        too_deep: the first bracket that stands inside too many others.
        misaligned: line breaks before lines that fit no block.
    """

    always_accept = ("_NEWLINE",)

    def __init__(self) -> None:
        self.blocks = [[""]]
        self.brackets: list[Token] = []
        self.too_deep: Token | None = None
        self.misaligned: list[Token] = []

    def process(self, stream: Iterator[Token]) -> Iterator[Token]:
        for token in stream:
            self.count(token)
            if token.type != "_NEWLINE":
                yield token
            elif not self.brackets:
                yield from self._line_break(token)
        for _ in self.blocks[1:]:
            yield Token("_DEDENT", "")

    def count(self, token: Token) -> None:
        """Keep count of open brackets."""
        if token.type in _OPENING:
            if len(self.brackets) >= MOST_NESTING and self.too_deep is None:
                self.too_deep = token
            self.brackets.append(token)
        elif token.type in _CLOSING and self.brackets:
            self.brackets.pop()

    def _line_break(self, token: Token) -> Iterator[Token]:
        yield token
        indentation = indentation_after(token)
        if indentation in self.blocks[-1]:
            return
        if any(indentation.startswith(outer) for outer in self.blocks[-1]):
            self.blocks.append([indentation])
            yield Token.new_borrow_pos("_INDENT", indentation, token)
            return
        is_known = any(indentation in block for block in self.blocks)
        while indentation not in self.blocks[-1] and (is_known or len(self.blocks[-2][0]) > len(indentation)):
            self.blocks.pop()
            yield Token.new_borrow_pos("_DEDENT", indentation, token)
        if not is_known:
            self.blocks[-1].append(indentation)
            self.misaligned.append(token)


def indentation_after(newline: Token) -> str:
    """The white space before the first word after a line break (blank lines and comments passed over); what stands
    before a form feed doesn't count."""
    return newline.rpartition("\n")[2].partition("#")[0].rpartition("\f")[2]
