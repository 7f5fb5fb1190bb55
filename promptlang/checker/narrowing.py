"""What a condition says of the types of variables: which options of a union are left where it holds, or doesn't."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import TypeAlias

from promptlang.checker.statics import Scope, joined
from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape, describe
from promptlang.syntax import ast
from promptlang.values.types import assignable, field_shape, options_of, shape_of, union, with_field
from promptlang.values.values import Value

Test: TypeAlias = Callable[[Shape], bool]
"""Whether some value of an option may pass."""

_OPPOSITES = {"!=": "==", "not in": "in"}


def narrowed(condition: ast.Expression, holds: bool, scope: Scope, constants: Mapping[str, Value]) -> Scope:
    """The variables where a condition holds, or where it doesn't.

    Args:
        condition: which; what it says by `==`, `!=`, `in`, `not in`, truth, `not`, `and` and `or` counts.
        holds: which of the two.
        scope: the variables where it is asked; stays as it is.
        constants: values of consts, by name.

    Returns:
        A scope in `scope` in which unions have only the options that are left, also those in fields of variables;
        `scope` where that says nothing new.
    """
    match condition:
        case ast.Unary(operator="not", operand=operand):
            return narrowed(operand, not holds, scope, constants)
        case ast.Logic(operator=operator, operands=operands):
            if (operator == "and") is holds:
                return reduce(lambda inner, operand: narrowed(operand, holds, inner, constants), operands, scope)
            return _one_so(operands, holds, scope, constants)
        case ast.Comparison(first=first, rest=((operator, second),)):
            is_meant = holds is (operator not in _OPPOSITES)
            return _compared(first, _OPPOSITES.get(operator, operator), second, is_meant, scope, constants)
    return _restricted(condition, _may_be_true if holds else _may_be_false, scope)


def _one_so(operands: Sequence[ast.Expression], holds: bool, scope: Scope, constants: Mapping[str, Value]) -> Scope:
    """Where one operand comes out so, and those before it don't."""
    ways, rest = list[Scope](), scope
    for operand in operands:
        ways.append(narrowed(operand, holds, rest, constants).inner())
        rest = narrowed(operand, not holds, rest, constants)
    left = joined(scope, ways)
    return Scope(left, scope) if left else scope


def _compared(
    first: ast.Expression,
    operator: str,
    second: ast.Expression,
    holds: bool,
    scope: Scope,
    constants: Mapping[str, Value],
) -> Scope:
    target, values = first, _values(operator, second, scope, constants)
    if values is None and operator == "==":
        target, values = second, _values(operator, first, scope, constants)
    if values is None:
        return scope
    known = values
    if holds:
        return _restricted(target, lambda option: any(_may_equal(option, value) for value in known), scope)
    return _restricted(target, lambda option: not any(_is_surely(option, value) for value in known), scope)


def _values(
    operator: str, expression: ast.Expression, scope: Scope, constants: Mapping[str, Value]
) -> list[Value] | None:
    """What `==` or `in` compares with; None where that isn't known, or is not a few plain values."""
    values: Value
    match expression:
        case ast.Literal(value=value):
            values = value
        case ast.Template() if expression.constant is not None:
            values = expression.constant
        case ast.ListDisplay(items=items):
            inside = [_values("==", item, scope, constants) for item in items]
            values = [value for item in inside for value in item or ()]
            if None in inside:
                return None
        case ast.Name(name=name) if name in constants and name not in scope:
            values = constants[name]
        case _:
            return None
    wanted = values if operator == "in" else [values] if operator == "==" else None
    is_plain = isinstance(wanted, list) and all(
        value is None or isinstance(value, str | int | float) for value in wanted
    )
    return wanted if isinstance(wanted, list) and is_plain else None


def _restricted(expression: ast.Expression, test: Test, scope: Scope) -> Scope:
    """The variables where what an expression names passes a test."""
    path: list[str] = []
    while isinstance(expression, ast.Attribute):
        path.insert(0, expression.name)
        expression = expression.value
    name = expression.name if isinstance(expression, ast.Name) else ""
    variable = scope.get(name)
    if variable is None or not isinstance(variable.type, shapes.Union | shapes.Record):
        return scope
    left = _left(variable.type, path, test)
    if left is None or left == variable.type:
        return scope
    return Scope({name: replace(variable, type=left)}, scope)


def _left(shape: Shape, path: Sequence[str], test: Test) -> Shape | None:
    """What is left of a shape where the part behind some names passes; None where nothing is."""
    if isinstance(shape, shapes.Union):
        left = [some for option in options_of(shape) if (some := _left(option, path, test)) is not None]
        return union(left) if left else None
    if not path:
        return shape if test(shape) else None
    if not isinstance(shape, shapes.Record):
        return shape if isinstance(shape, shapes.AnyJson | shapes.Schema) else None
    if all(field.name != path[0] for field in shape.fields):
        return None
    part = _left(field_shape(shape, path[0]), path[1:], test)
    return None if part is None else with_field(shape, path[0], part)


def _may_equal(option: Shape, value: Value) -> bool:
    match option:
        case shapes.Constant(value=own):
            return own == value
        case shapes.Int() | shapes.Float() | shapes.Bool():
            return isinstance(value, int | float)
    scalar = shape_of(value)
    return scalar is None or assignable(scalar, option)


def _is_surely(option: Shape, value: Value) -> bool:
    match option:
        case shapes.Constant(value=own):
            return own == value
        case shapes.Null():
            return value is None
    return False


def _may_be_true(option: Shape) -> bool:
    return not isinstance(option, shapes.Null) and not (isinstance(option, shapes.Constant) and not option.value)


def _may_be_false(option: Shape) -> bool:
    return not isinstance(option, shapes.Record) and not (isinstance(option, shapes.Constant) and option.value)


def which_of(text: str, wanted: Sequence[shapes.Record], records: Sequence[shapes.Record]) -> str | None:
    """The condition that tells some records of a union from the others by a field that holds a constant in each.

    Args:
        text: how the program writes the value.
        wanted: the records for which it holds.
        records: all of them.

    Returns:
        As the program would write it; None where no field tells them apart.
    """
    for field in wanted[0].fields:
        tags = [_tag(record, field.name) for record in records]
        if None not in tags and len(set(tags)) == len(tags):
            texts = [describe(tag) for record in wanted if (tag := _tag(record, field.name)) is not None]
            values = f"== {texts[0]}" if len(texts) == 1 else f"in [{', '.join(texts)}]"
            return f"{text}.{field.name} {values}"
    return None


def _tag(record: shapes.Record, name: str) -> shapes.Constant | None:
    return next((f.shape for f in record.fields if f.name == name and isinstance(f.shape, shapes.Constant)), None)
