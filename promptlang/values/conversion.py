"""Values on their way in and out: JSON data to the language's values and back, arguments to parameters."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from promptlang.grammar import shapes
from promptlang.grammar.reader import validate
from promptlang.grammar.shapes import Shape
from promptlang.syntax.ast import Parameter
from promptlang.values.expressions import evaluate
from promptlang.values.values import Answered, Parts, RecordValue, Value


class ArgumentsError(Exception):
    """Arguments that don't fit a program; `str()` says which and what would."""


class Signature(Protocol):
    """What takes arguments: a program's `Graph`, or a `Tool`."""

    @property
    def name(self) -> str: ...

    @property
    def parameters(self) -> Sequence[Parameter]: ...

    @property
    def shapes(self) -> Mapping[str, Shape]: ...

    @property
    def constants(self) -> Mapping[str, Value]: ...


def bind_arguments(callee: Signature, given: Mapping[str, Any]) -> dict[str, Value]:
    """The parameters of a program or a tool with their values.

    Args:
        callee: the program or the tool.
        given: JSON data or values, by parameter name.

    Returns:
        A value for every parameter, defaults filled in.

    Raises:
        ArgumentsError: an argument is missing, unknown, or not of its type.
    """
    names = [parameter.name for parameter in callee.parameters]
    unknown = [name for name in given if name not in names]
    if unknown:
        expected = f"it takes {', '.join(names)}" if names else "it takes none"
        raise ArgumentsError(f"{callee.name} has no argument {unknown[0]!r}: {expected}")
    bound: dict[str, Value] = {}
    for parameter in callee.parameters:
        if parameter.name in given:
            value = given[parameter.name]
        elif parameter.default is not None:
            value = evaluate(parameter.default, callee.constants)
        else:
            raise ArgumentsError(f"{callee.name} needs the argument {parameter.name!r}")
        bound[parameter.name] = _fit(callee.shapes[parameter.name], value, parameter.name)
    return bound


def _fit(shape: Shape, value: Any, name: str) -> Value:
    data = to_json(value)
    try:
        validate(shape, data)
    except ValueError as error:
        raise ArgumentsError(f"the argument {name!r} does not fit: {error}") from error
    return from_json(shape, data)


def to_json(value: Any) -> Any:
    """A value as plain JSON data: records and branches as dicts of their parts."""
    if isinstance(value, Parts):
        return to_json(value.plain())
    if isinstance(value, Answered):
        return value.plain()
    if isinstance(value, list):
        return [to_json(item) for item in value]
    if isinstance(value, dict):
        return {key: to_json(item) for key, item in value.items()}
    return value


def from_json(shape: Shape, data: Any, enclosing: Mapping[str, shapes.Record] | None = None) -> Value:
    """JSON data of a shape as a value: what a record describes becomes a record.

    Args:
        shape: what the data has been validated against.
        data: JSON data.
        enclosing: records around this place, by name (for recursive ones).
    """
    known = enclosing or {}
    match shape:
        case shapes.Record(name=name, fields=fields) if isinstance(data, dict):
            inside = {**known, name: shape}
            return RecordValue(
                name, {f.name: from_json(f.shape, data[f.name], inside) for f in fields if f.name in data}
            )
        case shapes.Recursive(name=name):
            return from_json(known[name], data, known)
        case shapes.List(item=item) if isinstance(data, list):
            return [from_json(item, element, known) for element in data]
        case shapes.Dict(value=inner) if isinstance(data, dict):
            return {key: from_json(inner, element, known) for key, element in data.items()}
        case shapes.Union(options=options):
            return from_json(_matching(options, data, known), data, known)
        case shapes.Float() if isinstance(data, int) and not isinstance(data, bool):
            return float(data)
    return data  # type: ignore[no-any-return]


def _matching(options: tuple[Shape, ...], data: Any, enclosing: Mapping[str, shapes.Record]) -> Shape:
    """The first option that the data fits."""
    for option in options:
        try:
            validate(option, data, enclosing)
        except ValueError:
            continue
        return option
    raise ValueError(f"{data!r} fits none of the options")
