r"""Reads a pattern: the dialect on which the engines and Python's `re` agree.

Characters, `.`, sets `[a-z]` and `[^a-z]`, escapes (`\d \w \s \D \W \S \t \n \r \f \v \0 \xHH \uHHHH \u{H} \UHHHHHHHH`,
and a backslash before punctuation), groups `(...)`, `(?:...)`, `(?P<name>...)`, alternation, and the repetitions
`* + ? {m} {m,} {m,n}` with their lazy forms, which mean the same where the whole text must match. `^` may stand first,
`$` last. `\d`, `\w` and `\s` are ASCII, `.` is any character but a line feed. What else there is (lookaround,
back-references, `\b`, `\p`, flags, possessive repetition) is refused by name.
"""

import string
import sys
from dataclasses import dataclass

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.regular.regex import (
    ANY_CHARACTER,
    DIGIT,
    Characters,
    Concatenation,
    Regex,
    Repetition,
    either,
    literal,
    nested_count,
    then,
)

MOST_CHARACTERS = 10_000
"""Length of a pattern."""

DEEPEST = 50
"""Groups inside groups."""

LARGEST_NESTED = 2_000
"""`nested_count` of counted repetitions inside one another: llguidance counts each in a state of its own, and gave up
on ambiguous ones (`(a{1,100}){1,100}`) after a few tokens. One that stands alone may count to anything."""

WORD = Characters.of([(ord("0"), ord("9")), (ord("A"), ord("Z")), (ord("a"), ord("z")), (ord("_"), ord("_"))])
SPACE = Characters.of([(9, 13), (32, 32)])
ANY_TEXT = Repetition(ANY_CHARACTER, 0, None)
NOT_LINE_FEED = ANY_CHARACTER.minus(Characters.of([(10, 10)]))
CLASSES = {
    "d": DIGIT,
    "w": WORD,
    "s": SPACE,
    "D": DIGIT.negated(),
    "W": WORD.negated(),
    "S": SPACE.negated(),
}
CONTROLS = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13, "0": 0}
HEX_DIGITS = {"x": 2, "u": 4, "U": 8}
UNSUPPORTED_ESCAPES = {
    "b": r"a word boundary (\b)",
    "B": r"a word boundary (\B)",
    "A": r"an anchor (\A)",
    "Z": r"an anchor (\Z)",
    "z": r"an anchor (\z)",
    "p": r"a Unicode property (\p)",
    "P": r"a Unicode property (\P)",
    "k": "a back-reference",
    "c": r"a control escape (\c)",
    "N": r"a named character (\N)",
}
UNSUPPORTED_GROUPS = {
    "?=": "lookahead",
    "?!": "negative lookahead",
    "?<=": "lookbehind",
    "?<!": "negative lookbehind",
    "?>": "an atomic group",
    "?P=": "a back-reference",
    "?#": "a comment",
    "?(": "a conditional",
}


def parse(pattern: str) -> Regex:
    """A pattern that must match the whole text.

    Raises:
        ConstraintError: a construct that isn't in the dialect, or a pattern too large or that matches nothing.
    """
    return either(*(option.regex for option in _Parser(pattern).parse()))


def parse_search(pattern: str) -> Regex:
    """The whole texts in which a pattern matches somewhere; raises as `parse`."""
    return either(*(option.whole_text() for option in _Parser(pattern).parse()))


@dataclass(frozen=True)
class _Option:
    """A top-level option, and whether it says where the text begins and ends."""

    regex: Regex
    at_start: bool
    at_end: bool

    def whole_text(self) -> Regex:
        before = () if self.at_start else (ANY_TEXT,)
        after = () if self.at_end else (ANY_TEXT,)
        return then(*before, self.regex, *after)


class _Parser:
    """Recursive descent over one pattern."""

    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.at = 0
        self.depth = 0

    def parse(self) -> list[_Option]:
        if len(self.pattern) > MOST_CHARACTERS:
            raise ConstraintError(f"a pattern is longer than {MOST_CHARACTERS} characters")
        options = [self._option()]
        while self._take("|"):
            options.append(self._option())
        if self.at < len(self.pattern):
            raise self._unexpected()
        return options

    def _option(self) -> _Option:
        at_start = self._take("^")
        regex = self._concatenation()
        return _Option(regex, at_start, self._take("$"))

    def _unexpected(self) -> ConstraintError:
        found = self.pattern[self.at]
        if found == ")":
            return self._error("a ) without its (")
        return self._error(f"an anchor ({found}) inside the pattern is not supported")

    # Levels ------------------------------------------------------------------------------------------

    def _alternation(self) -> Regex:
        options = [self._concatenation()]
        while self._take("|"):
            options.append(self._concatenation())
        return either(*options)

    def _concatenation(self) -> Regex:
        parts: list[Regex] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)$^":
            parts.append(self._repeated(self._atom()))
        return then(*parts) if parts else Concatenation(())

    def _repeated(self, item: Regex) -> Regex:
        start = self.at
        bounds = self._bounds()
        if bounds is None:
            return item
        low, high = bounds
        if high is not None and high < low:
            raise self._error(f"the repetition {self.pattern[start : self.at]} ends before it begins")
        if self._take("+"):
            raise self._error("possessive repetition is not supported")
        self._take("?")
        if self._peek() and self._peek() in "*+?":
            raise self._error("a repetition of a repetition needs a group")
        repeated = Repetition(item, low, high)
        if nested_count(item) > 1 and nested_count(repeated) > LARGEST_NESTED:
            count = self.pattern[start : self.at]
            raise self._error(f"{count} around another counted repetition makes it too large; use + or * for one")
        return repeated

    def _bounds(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(sign):
                return bounds
        return self._counted() if self._peek() == "{" else None

    def _counted(self) -> tuple[int, int | None] | None:
        inside, closed, _ = self.pattern[self.at + 1 :].partition("}")
        low, comma, high = inside.partition(",")
        if not closed or not _is_number(low) or not (high == "" or _is_number(high)):
            raise self._error(r"a { that counts nothing is written \{")
        self.at += len(inside) + 2
        return int(low), int(low) if not comma else int(high) if high else None

    def _atom(self) -> Regex:
        character = self._next()
        match character:
            case "(":
                return self._group()
            case "[":
                return self._set()
            case "\\":
                return self._escape()
            case ".":
                return NOT_LINE_FEED
            case "*" | "+" | "?" | "{":
                raise self._error(f"the repetition {character} stands after nothing")
        return literal(character)

    def _group(self) -> Regex:
        self._open_group()
        self.depth += 1
        if self.depth > DEEPEST:
            raise self._error(f"groups nest deeper than {DEEPEST}")
        inside = self._alternation()
        if self._peek() in ("^", "$"):
            raise self._unexpected()
        if not self._take(")"):
            raise self._error("a ( without its )")
        self.depth -= 1
        return inside

    def _open_group(self) -> None:
        for opening, name in UNSUPPORTED_GROUPS.items():
            if self.pattern.startswith(opening, self.at):
                raise self._error(f"{name} is not supported")
        if self._take("?:") or self._peek() != "?":
            return
        if not (self._take("?P<") or self._take("?<")):
            raise self._error("flags such as (?i) are not supported")
        self.at += len(self.pattern[self.at :].partition(">")[0]) + 1

    # Sets --------------------------------------------------------------------------------------------

    def _set(self) -> Characters:
        negated = self._take("^")
        if self._peek() == "]":
            raise self._error(r"a ] that begins [...] reads differently from engine to engine; it is written \]")
        ranges: list[tuple[int, int]] = []
        while not self._take("]"):
            ranges += self._set_item()
        chosen = Characters.of(ranges).negated() if negated else Characters.of(ranges)
        if not chosen.ranges:
            raise self._error("no text matches a set [...] that leaves out every character")
        return chosen

    def _set_item(self) -> list[tuple[int, int]]:
        first = self._set_character()
        if not (self._peek() == "-" and self.pattern[self.at + 1 : self.at + 2] not in ("]", "")):
            return list(first.ranges)
        self.at += 1
        last = self._set_character()
        low, high = _only(first), _only(last)
        if low is None or high is None:
            raise self._error("a range in [...] needs a character on both sides")
        if high < low:
            raise self._error(f"the range {chr(low)}-{chr(high)} ends before it begins")
        return [(low, high)]

    def _set_character(self) -> Characters:
        character = self._next("]")
        if character == "[":
            raise self._error(r"a [ inside [...] is written \[")
        if character in "&~-" and self._peek() == character:
            raise self._error(f"{character * 2} inside [...] reads differently from engine to engine")
        if character == "\\":
            return Characters.of([(8, 8)]) if self._take("b") else self._escape()
        return Characters.of([(ord(character),) * 2])

    def _escape(self) -> Characters:
        letter = self._next()
        if letter in CLASSES:
            return CLASSES[letter]
        if letter in CONTROLS and not (letter == "0" and _is_number(self._peek())):
            return Characters.of([(CONTROLS[letter],) * 2])
        if letter in HEX_DIGITS:
            return Characters.of([(self._code_point(letter),) * 2])
        if letter in UNSUPPORTED_ESCAPES:
            raise self._error(f"{UNSUPPORTED_ESCAPES[letter]} is not supported")
        if letter.isdigit():
            raise self._error("a back-reference is not supported")
        if letter.isalpha():
            raise self._error(f"the escape \\{letter} is not known")
        return Characters.of([(ord(letter),) * 2])

    def _code_point(self, letter: str) -> int:
        if letter != "U" and self._take("{"):
            text = self.pattern[self.at :].partition("}")[0]
            self.at += len(text) + 1
        else:
            text = self.pattern[self.at : self.at + HEX_DIGITS[letter]]
            self.at += HEX_DIGITS[letter]
            if len(text) < HEX_DIGITS[letter]:
                raise self._error(f"\\{letter} needs {HEX_DIGITS[letter]} hexadecimal digits")
        if not text or not set(text) <= set(string.hexdigits) or int(text, 16) > sys.maxunicode:
            raise self._error(f"\\{letter}{text} is no code point")
        return int(text, 16)

    # Characters --------------------------------------------------------------------------------------

    def _peek(self) -> str:
        return self.pattern[self.at : self.at + 1]

    def _take(self, text: str) -> bool:
        if not self.pattern.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def _next(self, missing: str = "character") -> str:
        if self.at >= len(self.pattern):
            raise self._error(f"it ends where a {missing} must follow")
        self.at += 1
        return self.pattern[self.at - 1]

    def _error(self, what: str) -> ConstraintError:
        return ConstraintError(f"the pattern /{self.pattern}/ can't be compiled: {what}")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _only(characters: Characters) -> int | None:
    low, high = characters.ranges[0] if len(characters.ranges) == 1 else (0, -1)
    return low if low == high else None
