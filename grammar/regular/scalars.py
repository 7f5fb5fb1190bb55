"""Shapes whose text is regular: how each is written bare, and inside JSON."""

import json
from decimal import Decimal

from promptlang.grammar.regular import numeric
from promptlang.grammar.regular.regex import (
    ANY_CHARACTER,
    Alternation,
    Characters,
    Concatenation,
    Regex,
    Repetition,
    either,
    literal,
    repeated,
    then,
)
from promptlang.grammar.regular.regex_parser import parse
from promptlang.grammar.shapes import Bool, Constant, Float, Int, Null, Pattern, Shape, Str, Union

CONTROLS = Characters.of([(0, 31)])
PRINTABLE = ANY_CHARACTER.minus(CONTROLS)
TEXT_CHARACTER = Characters.of([*PRINTABLE.ranges, (9, 10)])
TEXT = repeated(TEXT_CHARACTER, 0, None)
"""What `str` may hold: no control characters but tab and line feed."""

NEEDS_ESCAPE = Characters.of([(0, 31), (ord('"'),) * 2, (ord("\\"),) * 2])
QUOTE = literal('"')


def bare(shape: Shape) -> Regex | None:
    """How a shape is written at the top of an answer; None where it isn't regular, or has parts.

    Raises:
        ConstraintError: a pattern or a range that can't be compiled.
    """
    match shape:
        case Str(maximum=maximum):
            return TEXT if maximum is None else repeated(TEXT_CHARACTER, 0, maximum)
        case Pattern(regex=pattern):
            return parse(pattern)
        case Null():
            return literal("none")
        case Constant(value=value):
            return literal(constant_text(value))
        case Union(options=options):
            return _all([bare(option) for option in options])
    return _plain(shape)


def quoted(shape: Shape) -> Regex | None:
    """How a shape is written inside JSON; None for what has parts. Raises as `bare`."""
    match shape:
        case Str() | Pattern():
            text = bare(shape)
            assert text is not None
            return json_string(text)
        case Null():
            return literal("null")
        case Union(options=options):
            return _all([quoted(option) for option in options])
        case Constant(value=str(value)):
            return literal(json.dumps(value, ensure_ascii=False))
        case Constant(value=value):
            return literal(constant_text(value))
    return _plain(shape)


def _plain(shape: Shape) -> Regex | None:
    """What is written alike bare and in JSON."""
    match shape:
        case Int(low=low, high=high):
            return numeric.integer(low, high)
        case Float(low=low, high=high):
            return numeric.decimal(low, high)
        case Bool():
            return either(literal("true"), literal("false"))
    return None


def _all(options: list[Regex | None]) -> Regex | None:
    regular = [option for option in options if option is not None]
    return either(*regular) if len(regular) == len(options) else None


def constant_text(value: str | int | float | bool) -> str:
    """A constant as it is written bare."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{Decimal(repr(value)):f}" if isinstance(value, float) else str(value)


# Inside a JSON string ------------------------------------------------------------------------------------


def json_string(text: Regex) -> Regex:
    """Texts as JSON strings: only what must be escaped is, the shortest way."""
    return then(QUOTE, _in_string(text), QUOTE)


def _in_string(regex: Regex) -> Regex:
    match regex:
        case Characters():
            return _characters_in_string(regex)
        case Concatenation(parts=parts):
            return then(*map(_in_string, parts)) if parts else regex
        case Alternation(options=options):
            return either(*map(_in_string, options))
        case Repetition(item=item, low=low, high=high):
            return Repetition(_in_string(item), low, high)


def _characters_in_string(characters: Characters) -> Regex:
    plain = characters.minus(NEEDS_ESCAPE)
    escaped = [literal(json.dumps(chr(code))[1:-1]) for code in _codes(NEEDS_ESCAPE) if code in characters]
    return either(*([plain] if plain.ranges else []), *escaped)


def _codes(characters: Characters) -> list[int]:
    return [code for low, high in characters.ranges for code in range(low, high + 1)]
