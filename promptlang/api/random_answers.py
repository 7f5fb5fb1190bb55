"""Random texts of shapes: what a model might answer that knows nothing, for tests of programs."""

import json
from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Any

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.reader import read
from promptlang.grammar.regular.scalars import constant_text
from promptlang.grammar.shapes import (
    AnyJson,
    Bool,
    Constant,
    ContextFree,
    Dict,
    Float,
    Int,
    List,
    Null,
    Pattern,
    Record,
    Recursive,
    Schema,
    Shape,
    Str,
    Union,
)
from promptlang.grammar.vocabulary import Vocabulary

WORDS = ("amber", "brook", "cedar", "dune", "ember", "fern", "grove", "heath")
MOST_ITEMS = 3
"""Of a list or a dict that may be longer."""

DEPTH = 4
"""Levels below which optional parts are left out, so that values end."""

WANDERED = 200
"""Bytes of a walk after which it closes what it can."""

_CLOSING = b'"}]'


def random_text(shape: Shape | None, random: Random) -> str:
    """A text that a model could have written for a shape.

    Args:
        shape: which; None for any text.
        random: draws it; equal states give equal texts.
    """
    match shape:
        case None:
            return _words(random)
        case Union(options=options):
            return random_text(random.choice(options), random)
        case Str() | Int() | Float() | Bool() | Null() | Constant():
            return _bare(_value(shape, random, {}, 0))
        case Pattern() | ContextFree() | Schema():
            return _walked(shape, random)
    return json.dumps(_value(shape, random, {}, 0), ensure_ascii=False, separators=(",", ":"))


def _bare(value: str | int | float | bool | None) -> str:
    return "none" if value is None else constant_text(value)


def _words(random: Random) -> str:
    return " ".join(random.choices(WORDS, k=random.randint(1, 4)))


def _value(shape: Shape, random: Random, records: Mapping[str, Record], depth: int) -> Any:
    """A value of a shape, as JSON has it."""
    match shape:
        case Str(maximum=maximum):
            return _words(random)[:maximum].strip()
        case Int(low=low, high=high):
            return random.randint(*_between(low, high))
        case Float(low=low, high=high):
            return _number(*_between(low, high), random)
        case Bool():
            return random.random() < 0.5
        case Null():
            return None
        case Constant(value=value):
            return value
        case Union(options=options):
            return _value(_option(options, random, depth), random, records, depth)
        case List(item=item, minimum=minimum, maximum=maximum):
            count = _count(minimum or 0, maximum, random, depth)
            return [_value(item, random, records, depth + 1) for _ in range(count)]
        case Dict(value=item):
            names = random.sample(WORDS, _count(0, None, random, depth))
            return {name: _value(item, random, records, depth + 1) for name in names}
        case Record(name=name, fields=fields):
            known = {**records, name: shape}
            there = [field for field in fields if field.required or (depth < DEPTH and random.random() < 0.5)]
            return {field.name: _value(field.shape, random, known, depth + 1) for field in there}
        case Recursive(name=name):
            return _value(records[name], random, records, depth)
        case AnyJson():
            return random.choice([None, True, random.randint(0, 99), _words(random), [], {}])
        case Pattern() | ContextFree() | Schema():
            return read(shape, _walked(shape, random))
    raise TypeError(shape)


def _between(low: Any, high: Any) -> tuple[Any, Any]:
    """Both ends of a range, not far from each other where one is open."""
    if low is None:
        return (0, 100) if high is None else (high - 100, high)
    return low, low + 100 if high is None else high


def _number(low: float, high: float, random: Random) -> float:
    """A number between two, with few digits where one of these lies between them."""
    exact = random.uniform(low, high)
    short = round(exact, 2)
    return short if low <= short <= high else random.choice((low, high))


def _count(minimum: int, maximum: int | None, random: Random, depth: int) -> int:
    most = minimum + MOST_ITEMS if maximum is None else min(maximum, minimum + MOST_ITEMS)
    return minimum if depth >= DEPTH else random.randint(minimum, most)


def _option(options: tuple[Shape, ...], random: Random, depth: int) -> Shape:
    """One of several; in the depth one that ends, where there is one."""
    ends = [option for option in options if not isinstance(option, Record | Recursive | List | Dict)]
    return random.choice(ends if ends and depth >= DEPTH else options)


# Where only the constraint knows what may be written -----------------------------------------------------------


@cache
def _bytes() -> Vocabulary:
    """Bytes as tokens."""
    end = 256
    tokens = [*(bytes([byte]) for byte in range(end)), b""]
    return Vocabulary(tokens, frozenset(), (end,), lambda text: list(text.encode()), "promptlang.random_answers")


def _walked(shape: Shape, random: Random) -> str:
    """A text under a shape's constraint, byte by byte."""
    vocabulary = _bytes()
    state = compile_constraint(shape, vocabulary).start()
    written: list[int] = []
    while not state.is_done():
        if state.can_end() and (len(written) > WANDERED or random.random() < 0.5):
            break
        token = _chosen(vocabulary.tokens_of(state.mask()), random, in_haste=len(written) > WANDERED)
        state.advance(token)
        written.append(token)
    return bytes(written).decode()


def _chosen(allowed: list[int], random: Random, *, in_haste: bool) -> int:
    """One of some bytes: as often what closes a value, a mark, or a letter or digit, where there is a choice; no white
    space, no escape and nothing beyond ASCII, if it can be helped."""
    plain = [byte for byte in allowed if 0x20 < byte < 0x7F and byte != ord("\\")]
    closing = [byte for byte in plain if byte in _CLOSING]
    words = [byte for byte in plain if chr(byte).isalnum()]
    marks = [byte for byte in plain if byte not in _CLOSING and not chr(byte).isalnum()]
    if in_haste and closing:
        return random.choice(closing)
    return random.choice(random.choice([kind for kind in (closing, words, marks) if kind] or [allowed]))
