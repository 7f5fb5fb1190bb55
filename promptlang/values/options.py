"""The options of `gen` and `select`: what each may be."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape
from promptlang.values.types import fits


@dataclass(frozen=True)
class Option:
    """What an option may be.

    Attributes:
        shape: of its value.
        wanted: the same in words.
    """

    shape: Shape
    wanted: str


Options: TypeAlias = Mapping[str, Option]

RULES = ("sum", "mean", "prior", "greedy")

_WHOLE = "a whole number"
GEN_OPTIONS: Options = {
    "max_tokens": Option(shapes.Int(1), f"{_WHOLE}, at least 1"),
    "min_tokens": Option(shapes.Int(0), f"{_WHOLE}, at least 0"),
    "stop": Option(
        shapes.Union((shapes.Str(), shapes.List(shapes.Str()))), "a text that isn't empty, or a list of them"
    ),
    "temperature": Option(shapes.Float(0), "a number, at least 0"),
    "top_p": Option(shapes.Float(0, 1), "a number from 0 to 1"),
    "top_k": Option(shapes.Int(0), f"{_WHOLE}, at least 0"),
    "min_p": Option(shapes.Float(0, 1), "a number from 0 to 1"),
    "repetition_penalty": Option(shapes.Float(1e-9), "a number above 0"),
    "seed": Option(shapes.Int(), _WHOLE),
    "heal": Option(shapes.Bool(), "true or false"),
    "logprobs": Option(shapes.Bool(), "true or false"),
    "pretty": Option(shapes.Bool(), "true or false"),
}
SELECT_OPTIONS: Options = {
    "by": Option(shapes.Union(tuple(map(shapes.Constant, RULES))), 'one of "' + '", "'.join(RULES) + '"'),
    "temperature": Option(shapes.Float(0), "a number, at least 0"),
    "heal": Option(shapes.Bool(), "true or false"),
}


OPTIONS: Mapping[str, tuple[str, ...]] = {"gen": tuple(GEN_OPTIONS), "select": ("options", *SELECT_OPTIONS)}
"""The names of what may be given to an answer, by what asks for it."""


def refusal(known: Options, given: Mapping[str, Any]) -> str | None:
    """What is wrong with the values of options, in one sentence; None where nothing is.

    Args:
        known: what they may be.
        given: the values, by name.
    """
    for name, value in given.items():
        option = known[name]
        if not fits(option.shape, value) or (name == "stop" and "" in ([value] if isinstance(value, str) else value)):
            return f"`{name}` must be {option.wanted}, not {value!r}"
    least, most = given.get("min_tokens", 0), given.get("max_tokens")
    if most is not None and least > most:
        return f"`min_tokens` must be at most `max_tokens` ({most}), not {least}"
    return None
