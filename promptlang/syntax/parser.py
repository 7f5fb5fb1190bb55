"""Source text to AST, with recovery: a line that can't be parsed is reported and left out, and parsing goes
on after it.

Recovery is yacc's: the parser's stack is cut back to where a line may start, the rest of the line is passed
over, and a BROKEN token
takes its place (Johnson, "Yacc: Yet Another Compiler-Compiler", 1975, section 7).
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

from lark import Token
from lark.lexer import BasicLexer
from lark.utils import TextSlice

from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Source, Span
from promptlang.syntax import ast
from promptlang.syntax.ast_builder import AstBuilder
from promptlang.syntax.automaton import Automaton, Node, tables
from promptlang.syntax.indentation import Indentation, indentation_after
from promptlang.syntax.limits import MOST_NESTING
from promptlang.syntax.unexpected import Unexpected, diagnose
from promptlang.syntax.walk import deepest

MOST_ERRORS = 50

_LAYOUT = {"_NEWLINE", "_INDENT", "_DEDENT", "$END"}


class Parsed(NamedTuple):
    """A module, and what was wrong with the lines that are missing from it."""

    module: ast.Module
    diagnostics: list[Diagnostic]


def parse(source: Source) -> Parsed:
    """Parse a file; never raises, whatever the text."""
    diagnostics: list[Diagnostic] = []
    module = _Parser(source, diagnostics).parse("file")
    if not isinstance(module, ast.Module):
        module = ast.Module(span=Span(source, 0, 0), source=source, doc=None, declarations=())
    return Parsed(module, _in_order(diagnostics))


def tokenise(source: Source) -> list[Token]:
    """The tokens of a file that has no errors, in order; line breaks and indentation, as blocks have them, included."""
    tokens: list[Token] = []
    _Run(source, "file", TextSlice(source.text, 0, len(source.text)), [], taken=tokens.append).run()
    return tokens


def parse_statements(source: Source) -> tuple[ast.Block, list[Diagnostic]]:
    """Parse statements that stand outside any declaration, as typed at a prompt; never raises."""
    diagnostics: list[Diagnostic] = []
    block = _Parser(source, diagnostics).parse("statements")
    return cast(ast.Block, block or ()), _in_order(diagnostics)


def _in_order(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    ordered = sorted(diagnostics, key=lambda diagnostic: (diagnostic.span.start, diagnostic.code))
    return ordered[:MOST_ERRORS]


class _Parser:
    """Parses stretches of one source: the whole, and the holes of its strings."""

    def __init__(self, source: Source, diagnostics: list[Diagnostic]) -> None:
        self._source = source
        self._diagnostics = diagnostics
        self._builder = AstBuilder(source, diagnostics, self._hole)

    def parse(self, start: str, begin: int = 0, end: int | None = None) -> object:
        """The AST of a stretch; None where nothing could be made of it."""
        text = TextSlice(self._source.text, begin, len(self._source.text) if end is None else end)
        run = _Run(self._source, start, text, self._diagnostics, declared=self._builder.build)
        node = run.run()
        if node is None:
            return None
        parsed = self._builder.build(node)
        too_deep = None if start == "hole" else run.too_deep or _too_deep(parsed)
        if too_deep is not None:
            self._diagnostics.append(faults.too_deep(too_deep, MOST_NESTING))
            return None
        return parsed

    def _hole(self, begin: int, end: int) -> ast.Expression | None:
        return cast(ast.Expression | None, self.parse("hole", begin, end))


def _too_deep(parsed: object) -> Span | None:
    depth, innermost = deepest(parsed)
    return innermost.span if innermost is not None and depth > MOST_NESTING else None


class _Abandoned(Exception):
    """A hole that can't be parsed."""


class _NoToken(Exception):
    """No token that is looked for begins here."""


class _Run:
    """One run of the parser over one stretch of source.

    Args:
        source: the source.
        start: what is to be found: `file`, `statements` or `hole`.
        text: the stretch.
        diagnostics: what is wrong goes here.
        taken: is told of each token that the parser has taken.
        declared: is told of each declaration that is whole.
    """

    def __init__(
        self,
        source: Source,
        start: str,
        text: TextSlice[str],
        diagnostics: list[Diagnostic],
        *,
        taken: Callable[[Token], object] | None = None,
        declared: Callable[[Node], object] = lambda node: None,
    ) -> None:
        self._tables = tables(start)
        self._automaton = Automaton(self._tables, declared)
        self._taken = taken
        self._text = text
        self._place = text.start
        self._source = source
        self._is_hole = start == "hole"
        self._diagnostics = diagnostics
        self._indentation = Indentation()
        self._line: list[Token] = []
        self._word_end = text.start
        self._is_broken = False

    def run(self) -> Node | None:
        """What was found; None for a hole with an error."""
        try:
            for token in self._indentation.process(self._tokens()):
                self._feed(token)
            end = Token("$END", "", self._text.end, end_pos=self._text.end)
            self._feed(end)
            return self._automaton.result
        except _Abandoned:
            return None
        finally:
            self._diagnostics += [
                faults.misaligned(self._span_of_indentation(token)) for token in self._indentation.misaligned
            ]

    @property
    def too_deep(self) -> Span | None:
        """The first bracket that stands inside too many others."""
        bracket = self._indentation.too_deep
        return None if bracket is None else self._span(bracket.start_pos or 0, bracket.end_pos or 0)

    # Tokens ------------------------------------------------------------------------------------------

    def _tokens(self) -> Iterator[Token]:
        """Tokens as the parser's state asks for them, BROKEN for broken lines, and a line break at the
        end."""
        last = None
        lexers, states = self._tables.lexers, self._automaton.states
        while True:
            if self._is_broken:
                yield from self._rest_of_line()
                last = None
            try:
                last = self._next(lexers[states[-1]])
                yield last
            except _NoToken:
                self._unexpected_text()
            except EOFError:
                if not self._indentation.brackets:
                    break
                self._never_closed(self._text.end)
        if last is not None and last.type != "_NEWLINE":
            yield Token("_NEWLINE", "\n", self._text.end, end_pos=self._text.end)

    def _next(self, lexer: BasicLexer) -> Token:
        """The next token. A comment or white space at the end of the text opens and closes no block."""
        token = self._token(lexer)
        ends_text = token.type == "_NEWLINE" and token.end_pos == self._text.end
        return token.update(value="\n") if ends_text else token

    def _token(self, lexer: BasicLexer) -> Token:
        text, start, match = self._text, self._place, lexer.scanner.match
        while start < text.end:
            found = match(text, start)
            if found is None:
                raise _NoToken
            value, kind = found
            self._place = start + len(value)
            if kind not in lexer.ignore_types:
                return Token(kind, value, start, end_pos=self._place)
            start = self._place
        raise EOFError

    def _rest_of_line(self) -> Iterator[Token]:
        """Pass over the rest of a broken line; BROKEN takes its place. Brackets may hold line breaks, but not
        shallower lines."""
        self._is_broken = False
        outer = len(self._indentation.blocks[-1][0])
        newline = None
        while newline is None:
            try:
                token = self._next(self._tables.any_lexer)
            except EOFError:
                newline = Token("_NEWLINE", "\n", self._text.end, end_pos=self._text.end)
            except _NoToken:
                self._move(self._place + 1)
            else:
                self._indentation.count(token)
                ends = not self._indentation.brackets or len(indentation_after(token)) <= outer
                newline = token if token.type == "_NEWLINE" and ends else None
        self._indentation.brackets.clear()
        yield Token("BROKEN", "")
        yield newline

    def _move(self, position: int) -> None:
        self._place = min(position, self._text.end)

    # Errors ------------------------------------------------------------------------------------------

    def _feed(self, token: Token) -> None:
        if not self._automaton.feed(token):
            self._unexpected(token)
            return
        if self._taken is not None:
            self._taken(token)
        if token.type in _LAYOUT:
            self._line = []
        else:
            self._line.append(token)
            self._word_end = token.end_pos or 0

    def _unexpected_text(self) -> None:
        """Nothing that may stand here begins here: find out what does."""
        start = self._place
        try:
            token = self._token(self._tables.any_lexer)
        except _NoToken:
            self._unreadable(start)
        else:
            self._indentation.count(token)
            self._unexpected(token)

    def _unreadable(self, start: int) -> None:
        """Report text that is no token at all."""
        text, end = self._text.text, self._text.end
        line_end = text.find("\n", start, end)
        line_end = end if line_end < 0 else line_end
        quotes = re.compile("\"\"\"|'''|\"|'").match(text, start)
        if quotes is None:
            self._report(faults.unknown_character(self._span(start, start + 1)))
            self._break_line()
            return
        is_long = len(quotes[0]) == 3
        inside = text[quotes.end() : end if is_long else line_end]
        breaks_in_hole = "${" in inside and quotes[0] in inside
        self._report(faults.string_not_closed(self._span(start, line_end), quotes[0], breaks_in_hole))
        self._move(end if is_long else line_end)
        self._break_line()

    def _unexpected(self, token: Token) -> None:
        """Report a token that may not stand here, and get ready to go on."""
        expected = self._automaton.accepts()
        if expected == {"_INDENT"} and not self._is_hole:
            self._missing_block(token)
        elif token.type == "_INDENT":
            self._report(faults.unexpected_indentation(self._span_of_indentation(token)))
            self._replace_line(token)
        elif token.type in _LAYOUT:
            self._report_unexpected(token, expected)
            self._replace_line(token)
        elif self._indentation.brackets and self._shallower_line(token.start_pos or 0) is not None:
            self._never_closed(token.start_pos or 0)
        else:
            self._report_unexpected(token, expected)
            self._break_line()

    def _report_unexpected(self, token: Token, expected: frozenset[str]) -> None:
        if token.type in _LAYOUT:
            token = Token(token.type, "", self._word_end, end_pos=self._word_end)
        is_top = len(self._indentation.blocks) == 1
        self._report(diagnose(Unexpected(self._source, tuple(self._line), token, expected, is_top, self._is_hole)))

    def _missing_block(self, token: Token) -> None:
        self._report(faults.missing_block(self._span(self._word_end - 1, self._word_end)))
        if token.type in _LAYOUT:
            self._replace_line(token)
            return
        self._cut_back()
        self._put(Token("BROKEN", ""), Token("_NEWLINE", ""))
        self._indentation.brackets.clear()
        self._move(token.start_pos or 0)

    def _never_closed(self, before: int) -> None:
        """Report the innermost open bracket, and go on at the first line that is not deeper than the block,
        or at the end."""
        bracket = self._indentation.brackets[-1]
        self._report(faults.never_closed(self._span(bracket.start_pos or 0, bracket.end_pos or 0)))
        line = self._shallower_line(before)
        self._move(self._text.end if line is None else line)
        self._indentation.brackets.clear()
        self._break_line()

    def _shallower_line(self, before: int) -> int | None:
        """Where the first line starts, after the open bracket, that can't be inside it by its indentation."""
        text = self._text.text
        width = len(self._indentation.blocks[-1][0])
        pattern = re.compile(rf"\r?\n(?=[ \t]{{0,{width}}}[^\s#)\]}}])")
        found = pattern.search(text, self._indentation.brackets[-1].end_pos or 0, min(before + 1, self._text.end))
        return None if found is None else found.start()

    def _break_line(self) -> None:
        """Give up the line: the lexer passes over the rest of it."""
        self._cut_back()
        self._is_broken = True

    def _replace_line(self, token: Token) -> None:
        """Give up the line that ends with this layout token."""
        self._cut_back()
        before = [] if token.type == "_NEWLINE" else [Token("_NEWLINE", "")]
        self._put(Token("BROKEN", ""), *before, token)

    def _put(self, *tokens: Token) -> None:
        """Have the parser take tokens in place of a broken line."""
        for token in tokens:
            taken = self._automaton.feed(token)
            assert taken, token.type

    def _cut_back(self) -> None:
        """Drop what the parser holds of the current line."""
        if self._is_hole:
            raise _Abandoned
        self._automaton.cut_back("BROKEN")
        self._line = []

    def _report(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)

    def _span(self, start: int, end: int) -> Span:
        return Span(self._source, start, end)

    def _span_of_indentation(self, newline: Token) -> Span:
        end = newline.end_pos or 0
        width = len(indentation_after(newline)) if newline.type == "_NEWLINE" else len(newline)
        return self._span(end - width, end)
