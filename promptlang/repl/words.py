"""The words of what is typed: how they look, and what may follow. Neither runs anything, nor waits for the model."""

import re
from collections.abc import Iterator
from functools import cache
from itertools import islice

from lark.utils import TextSlice

from promptlang.checker.names import SIMPLE_TYPES
from promptlang.checker.statics import AnswerType, ArmsType, BranchesType, BranchType, Static, static_of
from promptlang.grammar import shapes
from promptlang.repl.known import Known
from promptlang.syntax.automaton import tables
from promptlang.values.options import OPTIONS
from promptlang.values.types import field_shape

_KINDS = {"STRING": "string", "INT": "number", "FLOAT": "number", "COMMENT": "comment", "ROLE_NAME": "role"}
_PART = re.compile(r"(?P<owner>[^\W\d]\w*(?:\[[^\[\]]*\]|\.\w+)*)\.(?P<begun>\w*)\Z")
_STEP = re.compile(r"\[[^\[\]]*\]|\w+")
_CALL = re.compile(r"\b(gen|select)\s*\(([^()]|\([^()]*\))*\Z")
_WORD = re.compile(r"\w*\Z")


@cache
def keywords() -> tuple[str, ...]:
    """The words that mean something by themselves, as the grammar has them."""
    found = [
        re.match(r"(?:\(\?:)?([a-z|]+)\)?\\b", one.pattern.value) for one in tables("statements").any_lexer.terminals
    ]
    return tuple(sorted({word for one in found if one for word in one[1].split("|")}))


def pieces(text: str) -> Iterator[tuple[str, str]]:
    """A text in pieces, each with its kind: `keyword`, `role`, `string`, `number`, `comment` or nothing."""
    lexer = tables("statements").any_lexer
    whole, at = TextSlice(text, 0, len(text)), 0
    while at < len(text):
        value, name = lexer.scanner.match(whole, at) or (text[at], "")
        at += len(value)
        if name == "_NEWLINE":  # it holds comments, too
            yield from (
                ("comment" if piece.startswith("#") else "", piece) for piece in re.split("(#.*)", value) if piece
            )
        else:
            yield _KINDS.get(name, "keyword" if value in keywords() else ""), value


def completions(known: Known, before: str) -> tuple[int, list[str]]:
    """What may stand where text ends.

    Args:
        known: declarations and variables.
        before: the text.

    Returns:
        How many characters at its end a completion takes the place of; and the completions.
    """
    part = _PART.search(before)
    if part is not None:
        begun, words = part["begun"], _parts(_static(known, part["owner"]))
    else:
        begun = _WORD.search(before)[0]  # type: ignore[index]  # it always matches
        call = _CALL.search(before)
        options = [f"{name}=" for name in OPTIONS[call[1]]] if call is not None else []
        types = [*SIMPLE_TYPES, *known.names.types]
        words = [*options, *known.variables, *types, *known.names.declared, *keywords()]
    return len(begun), [word for word in dict.fromkeys(words) if word.startswith(begun) and word != begun]


def _static(known: Known, path: str) -> Static:
    """What is known of an expression of names and indexes; None where nothing is."""
    steps = _STEP.findall(path)
    variable = known.variables.get(steps[0])
    static = variable.type if variable is not None else None
    for step in islice(steps, 1, None):
        static = _item(static) if step.startswith("[") else _part(static, step)
    return static


def _item(static: Static) -> Static:
    match static:
        case BranchesType(branch=branch):
            return branch
        case shapes.List(item=shape) | shapes.Dict(value=shape):
            return static_of(shape)
    return None


def _part(static: Static, name: str) -> Static:
    match static:
        case BranchType() if name in static.part_names():
            return static.part(name)
        case ArmsType(arms=arms):
            return arms.get(name)
        case shapes.Record(fields=fields) if any(field.name == name for field in fields):
            return static_of(field_shape(static, name))
    return None


def _parts(static: Static) -> list[str]:
    match static:
        case BranchType():
            return static.part_names()
        case ArmsType(arms=arms):
            return list(arms)
        case shapes.Record(fields=fields):
            return [field.name for field in fields]
        case AnswerType(extras=extras):
            return list(extras)
    return []
