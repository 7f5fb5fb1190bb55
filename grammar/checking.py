"""Whether a shape can be a constraint, told without a tokenizer and without loading an engine where none is needed."""

from promptlang.grammar.errors import NOTHING_LEGAL, ConstraintError
from promptlang.grammar.notation import to_grammar
from promptlang.grammar.shapes import ContextFree, Dict, List, Record, Schema, Shape, Union


def check_shape(shape: Shape) -> None:
    """Check that `compile_constraint` can serve a shape.

    Raises:
        ConstraintError: it can't; `str()` says why.
    """
    grammar = to_grammar(shape, "")
    if _is_written_elsewhere(shape):
        _check_grammar(grammar)


def _is_written_elsewhere(shape: Shape) -> bool:
    """Whether a schema or a grammar is part of the shape: what we write ourselves is right."""
    match shape:
        case Schema() | ContextFree():
            return True
        case Union(options=options):
            return any(map(_is_written_elsewhere, options))
        case List(item=item) | Dict(value=item):
            return _is_written_elsewhere(item)
        case Record(fields=fields):
            return any(_is_written_elsewhere(field.shape) for field in fields)
    return False


def _check_grammar(grammar: str) -> None:
    # Takes 80 ms to import, which most programs needn't wait for.
    from promptlang.grammar.acceptor import bytes_vocabulary
    from promptlang.grammar.engines.earley import compile_grammar

    state = compile_grammar(grammar, bytes_vocabulary()).start()
    if not state.can_end() and not state.mask().any():
        raise ConstraintError(NOTHING_LEGAL)
