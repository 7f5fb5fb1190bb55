"""Why a token may not stand where it stands, in the words of someone who writes programs."""

from dataclasses import dataclass

from lark import Token

from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic, near
from promptlang.diagnostics.source import Source, Span

DECLARATIONS = ("program", "fragment", "record", "type", "const", "tool", "import")
STATEMENTS = (
    *("if", "elif", "else", "for", "while", "break", "continue", "pass", "return", "log", "pin", "require"),
    *("system", "user", "assistant", "role", "fork", "arm", "beam", "keep", "adopt", "use", "gen", "select"),
)
ANSWERS = ("gen", "select", "score")

_VALUE = {"NAME", "INT", "FLOAT", "STRING", "MINUS", "LPAR", "_TRUE", "_FALSE", "_NONE"}
_EXPRESSION = _VALUE | {"PLUS", "NOT", "LSQB", "LBRACE"}
_TYPE = _VALUE | {"REGEX", "_SCHEMA", "_GRAMMAR"}
_OPERATORS = (
    {"PLUS", "MINUS", "STAR", "SLASH", "DOUBLE_SLASH", "PERCENT", "DOUBLE_STAR", "DOT", "LSQB", "LPAR"}
    | {"EQUAL", "UNEQUAL", "LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL"}
    | {"AND", "OR", "NOT", "_IN", "_IF"}
)
_PUNCTUATION = {
    **{"COLON": ":", "COMMA": ",", "DOT": ".", "VBAR": "|", "ASSIGN": "=", "ARROW": "->", "RANGE": ".."},
    **{"LPAR": "(", "RPAR": ")", "LSQB": "[", "RSQB": "]", "LBRACE": "{", "RBRACE": "}"},
}
_OTHER = {
    "NAME": "a name",
    "INT": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "_NEWLINE": "the end of the line",
}


@dataclass(frozen=True)
class Unexpected:
    """A token that may not stand where it stands.

    Attributes:
        source: the source.
        line: the tokens of its line before it.
        token: the token; empty where the line ended too early.
        expected: the types of token that could stand there.
        is_top: whether the line stands outside any block.
        is_hole: whether it stands in a hole of a string.
    """

    source: Source
    line: tuple[Token, ...]
    token: Token
    expected: frozenset[str]
    is_top: bool
    is_hole: bool

    @property
    def span(self) -> Span:
        return self.span_of(self.token)

    def span_of(self, token: Token) -> Span:
        return Span(self.source, token.start_pos or 0, token.end_pos or 0)


def diagnose(what: Unexpected) -> Diagnostic:
    """The diagnostic for a token that may not stand where it stands."""
    return _misspelt(what) or _habit(what) or _misplaced(what) or _plain(what)


def _plain(what: Unexpected) -> Diagnostic:
    wanted = _wanted(what.expected)
    if what.token.type in ("_NEWLINE", "_DEDENT", "$END"):
        return faults.ends_early(what.span, "this hole" if what.is_hole else "this line", wanted)
    return faults.unexpected(what.span, _found(what), wanted)


def _misspelt(what: Unexpected) -> Diagnostic | None:
    """A word of the line that is nearly a keyword that could stand in its place."""
    starts_with_name = bool(what.line) and what.line[0].type == "NAME" and not what.is_hole
    if starts_with_name and what.line[1:2] != ("=",):
        known = DECLARATIONS if what.is_top else STATEMENTS
        if near(what.line[0], known):
            return faults.unknown_word(what.span_of(what.line[0]), what.line[0], known)
    keywords = {keyword for name in what.expected for keyword in _keywords(name)}
    if what.token.type == "NAME" and len(what.token) > 1 and near(what.token, keywords):
        return faults.unknown_word(what.span, what.token, keywords)
    return _misspelt_answer(what) if starts_with_name else None


def _misspelt_answer(what: Unexpected) -> Diagnostic | None:
    called = what.line[2:4]
    if [token.type for token in called] == ["NAME", "LPAR"] and near(called[0], ANSWERS):
        return faults.unknown_word(what.span_of(called[0]), called[0], ANSWERS)
    return None


def _habit(what: Unexpected) -> Diagnostic | None:
    """What other languages write."""
    first = what.line[0] if what.line else None
    last = what.line[-1] if what.line else None
    if what.token == "=" and first is not None and first.type in ("_IF", "_ELIF", "_WHILE", "_REQUIRE", "_KEEP"):
        return faults.assignment_in_condition(what.span)
    if what.token.type == "_IF" and last is not None and last.type == "_ELSE":
        return faults.else_if(what.span_of(last))
    if (
        what.token.type == "STRING"
        and last is not None
        and last in ("f", "F", "b", "u", "rf", "fr")
        and last.end_pos == what.token.start_pos
    ):
        return faults.string_prefix(what.span_of(last), last)
    if what.token.type == "STRING" and last is not None and last.type == "STRING":
        return faults.adjacent_strings(what.span)
    return None


def _misplaced(what: Unexpected) -> Diagnostic | None:
    if what.is_top and not what.line and not what.is_hole and what.token.type != "_NEWLINE":
        return faults.outside_declaration(what.span, _found(what))
    if what.token.type in ("RPAR", "RSQB", "RBRACE") and not _is_open(what):
        return faults.nothing_to_close(what.span, what.token)
    return None


def _is_open(what: Unexpected) -> bool:
    opened = sum(token.type in ("LPAR", "LSQB", "LBRACE") for token in what.line)
    closed = sum(token.type in ("RPAR", "RSQB", "RBRACE") for token in what.line)
    return opened > closed


def _keywords(terminal: str) -> tuple[str, ...]:
    if terminal == "ROLE_NAME":
        return ("system", "user", "assistant")
    is_keyword = (
        terminal.startswith("_")
        and terminal.strip("_").isalpha()
        and terminal not in ("_NEWLINE", "_INDENT", "_DEDENT")
    )
    return (terminal.strip("_").lower(),) if is_keyword or terminal in ("AND", "OR", "NOT") else ()


def _found(what: Unexpected) -> str:
    text = what.token.value.partition("\n")[0]
    return f"`{text if len(text) <= 30 else text[:30] + '…'}`"


def _wanted(expected: frozenset[str]) -> str | None:
    """What could stand there, where that is short to say."""
    left = set(expected)
    wanted = []
    if "REGEX" in left:
        wanted.append("a type")
        left -= _TYPE
    elif left >= {"NAME", "STRING", "LPAR"}:
        wanted.append("an expression")
        left -= _EXPRESSION
    elif "PLUS" in left:
        left -= _OPERATORS
    if "INT" in left:
        left.discard("MINUS")
    if wanted:
        left.discard("ASSIGN")
    wanted += sorted({_name(terminal) for terminal in left - {"BROKEN", "$END", "_INDENT", "_DEDENT"}})
    return (
        None
        if not 1 <= len(wanted) <= 4
        else wanted[0]
        if len(wanted) == 1
        else f"{', '.join(wanted[:-1])} or {wanted[-1]}"
    )


def _name(terminal: str) -> str:
    if terminal in _OTHER:
        return _OTHER[terminal]
    if terminal in _PUNCTUATION:
        return f"`{_PUNCTUATION[terminal]}`"
    return " or ".join(f"`{keyword}`" for keyword in _keywords(terminal)) or terminal.strip("_").lower().replace(
        "_", " "
    )
