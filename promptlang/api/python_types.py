"""Shapes as Python's type checkers write them."""

from collections.abc import Callable

from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape


def _own_name(record: shapes.Record | shapes.Recursive) -> str:
    return record.name


def python_type(shape: Shape, called: Callable[[shapes.Record | shapes.Recursive], str] = _own_name) -> str:
    """The Python type of what a shape describes, as text.

    Args:
        shape: which.
        called: what the class of a record is called.
    """
    match shape:
        case shapes.Str() | shapes.Pattern() | shapes.ContextFree():
            return "str"
        case shapes.Int():
            return "int"
        case shapes.Float() | shapes.Constant(value=float()):
            return "float"
        case shapes.Bool():
            return "bool"
        case shapes.Null():
            return "None"
        case shapes.Constant(value=value):
            return f"Literal[{value!r}]"
        case shapes.Union(options=options):
            return " | ".join(dict.fromkeys(python_type(option, called) for option in options))
        case shapes.List(item=item):
            return f"list[{python_type(item, called)}]"
        case shapes.Dict(value=value_shape):
            return f"dict[str, {python_type(value_shape, called)}]"
        case shapes.Record() | shapes.Recursive():
            return called(shape)
    return "Any"
