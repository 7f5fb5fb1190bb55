"""One layout for every program: source text to source text.

It moves white space and nothing else: tokens and comments are printed as they stand in the source, so what a program
means can't change. (The one exception is the comma after the last item of a broken bracket.)
"""

import re

from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Source
from promptlang.syntax.formatter.lines import lines_of
from promptlang.syntax.formatter.printer import Printer
from promptlang.syntax.parser import parse, tokenise

_LINE_BREAK = re.compile(r"(?<!\r)\r?\n")


class FormatError(Exception):
    """A program that can't be parsed, and so has no layout.

    Attributes:
        diagnostics: its errors.
    """

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        super().__init__(f"{len(diagnostics)} errors")
        self.diagnostics = diagnostics


def format_source(source: Source) -> str:
    """A program in the one layout.

    Args:
        source: its text; the form of its first line break is kept for all.

    Returns:
        The text laid out; formatting that again changes nothing, and its AST is the same.

    Raises:
        FormatError: it has errors of syntax.
    """
    errors = [diagnostic for diagnostic in parse(source).diagnostics if diagnostic.is_error]
    if errors:
        raise FormatError(errors)
    first_break = _LINE_BREAK.search(source.text)
    text = Printer().file(lines_of(source.text, tokenise(source)))
    return _LINE_BREAK.sub(first_break[0], text) if first_break else text
