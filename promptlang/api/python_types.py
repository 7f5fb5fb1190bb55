"""Shapes as Python's type checkers write them."""

from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape


def python_type(shape: Shape) -> str:
    """The Python type of what a shape describes, as text; a record goes by its name."""
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
            return " | ".join(dict.fromkeys(map(python_type, options)))
        case shapes.List(item=item):
            return f"list[{python_type(item)}]"
        case shapes.Dict(value=value_shape):
            return f"dict[str, {python_type(value_shape)}]"
        case shapes.Record(name=name) | shapes.Recursive(name=name):
            return name
    return "Any"
