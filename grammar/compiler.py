"""From a shape to the constraint that serves it.

Constants and unions of constants go to the trie, which is exact and has nothing to compile; all else to llguidance's
parser. (A table of masks would save microseconds a row of a step and cost milliseconds to half a second to compile: see
docs/performance.md.) Compiled constraints are kept in memory, by shape, prefix and tokenizer; none takes long enough to
be worth a place on disk.
"""

from functools import lru_cache

from promptlang.grammar.constraint import Constraint
from promptlang.grammar.engines.earley import compile_grammar
from promptlang.grammar.engines.trie import TrieConstraint
from promptlang.grammar.engines.unique import UniqueConstraint
from promptlang.grammar.json_schema.uniqueness import unique_place
from promptlang.grammar.notation import to_grammar
from promptlang.grammar.regular.scalars import constant_text
from promptlang.grammar.shapes import Bool, Constant, Null, Shape, Union
from promptlang.grammar.vocabulary import Vocabulary

KEPT = 1024
"""Compiled constraints kept in memory."""


def compile_constraint(shape: Shape, vocabulary: Vocabulary, *, prefix: str = "", pretty: bool = False) -> Constraint:
    """The constraint for values of a shape.

    Args:
        shape: what may be written.
        vocabulary: whose tokens.
        prefix: text that must come first and is no part of the value (token healing).
        pretty: whether JSON is laid out for people (see `notation.WhiteSpace`).

    Raises:
        ConstraintError: the shape can't be compiled, or not within the limits.
    """
    return _compile(shape, vocabulary, prefix, pretty)


@lru_cache(KEPT)
def _compile(shape: Shape, vocabulary: Vocabulary, prefix: str, pretty: bool) -> Constraint:
    texts = _texts(shape)
    if texts is not None:
        return TrieConstraint([prefix + text for text in texts], vocabulary)
    constraint = compile_grammar(to_grammar(shape, prefix, pretty), vocabulary)
    place = unique_place(shape)
    return constraint if place is None else UniqueConstraint(constraint, place, len(prefix.encode()))


def _texts(shape: Shape) -> list[str] | None:
    """All texts of a shape, where it lists them."""
    match shape:
        case Constant(value=value):
            return [constant_text(value)]
        case Bool():
            return ["true", "false"]
        case Null():
            return ["none"]
        case Union(options=options):
            texts = [_texts(option) for option in options]
            return None if None in texts else [text for option in texts for text in option or ()]
    return None
