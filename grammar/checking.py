"""Whether a shape can be a constraint, told without a tokenizer and without loading an engine where none is needed."""

from collections.abc import Iterator

from promptlang.grammar.errors import NOTHING_LEGAL, ConstraintError, TooLargeError
from promptlang.grammar.grammar_text import GrammarText
from promptlang.grammar.notation import to_grammar
from promptlang.grammar.shapes import ContextFree, Dict, List, Record, Schema, Shape, Union


def check_shape(shape: Shape) -> None:
    """Check that `compile_constraint` can serve a shape.

    Raises:
        ConstraintError: it can't; `str()` says why, and where in a schema or a grammar.
    """
    for part in _written_elsewhere(shape):
        _check_part(part)
        if part is not shape:
            _check_compiles(shape)
    to_grammar(shape, "")


def _written_elsewhere(shape: Shape) -> Iterator[Schema | ContextFree]:
    """The schemas and grammars in a shape: what we write ourselves is right."""
    match shape:
        case Schema() | ContextFree():
            yield shape
        case Union(options=options):
            for option in options:
                yield from _written_elsewhere(option)
        case List(item=item) | Dict(value=item):
            yield from _written_elsewhere(item)
        case Record(fields=fields):
            for field in fields:
                yield from _written_elsewhere(field.shape)


def _check_part(part: Schema | ContextFree) -> None:
    """Check a schema or a grammar by itself; what is wrong is said with its place."""
    try:
        _check_compiles(part)
    except ConstraintError as error:
        place = _place_in_schema(part, error) if isinstance(part, Schema) else _place_in_grammar(part, error)
        raise ConstraintError(f"{part.file}{place}: {error}") from error


def _place_in_grammar(part: ContextFree, error: ConstraintError) -> str:
    if error.line is None:
        return ""
    rule = GrammarText(part.text).rule_at(error.line)
    return f", line {error.line}" + (f", `{rule}`" if rule else "")


def _place_in_schema(part: Schema, error: ConstraintError) -> str:
    from promptlang.grammar.json_schema.places import refused_place  # only where something is wrong

    if isinstance(error, TooLargeError):
        return ""
    return f", {refused_place(part.text, str(error), lambda inner: _message_of(Schema(inner)))}"


def _message_of(schema: Schema) -> str:
    """Why a schema is refused; nothing where it isn't."""
    try:
        _check_compiles(schema)
    except ConstraintError as error:
        return str(error)
    return ""


def _check_compiles(shape: Shape) -> None:
    # Takes 80 ms to import, which most programs needn't wait for.
    from promptlang.grammar.acceptor import bytes_vocabulary
    from promptlang.grammar.engines.earley import compile_grammar

    state = compile_grammar(to_grammar(shape, ""), bytes_vocabulary()).start()
    if not state.can_end() and not state.mask().any():
        raise ConstraintError(NOTHING_LEGAL)
