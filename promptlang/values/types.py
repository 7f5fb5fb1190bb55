"""Shapes as static types: which values they hold, and which of them fit in which."""

from collections.abc import Iterable
from functools import cache

from promptlang.grammar.regular.regex_parser import parse
from promptlang.grammar.shapes import (
    AnyJson,
    Bool,
    Constant,
    ContextFree,
    Dict,
    Field,
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
from promptlang.values.values import Parts, RecordType, RecordValue, Value


def union(shapes: Iterable[Shape]) -> Shape:
    """The shape of what has one of several shapes; one shape stands for itself."""
    options: dict[Shape, None] = {}
    for shape in shapes:
        options |= dict.fromkeys(shape.options if isinstance(shape, Union) else (shape,))
    return next(iter(options)) if len(options) == 1 else Union(tuple(options))


def options_of(shape: Shape) -> tuple[Shape, ...]:
    """The options of a union and of those inside it; another shape is its own one option."""
    if not isinstance(shape, Union):
        return (shape,)
    return tuple(inner for option in shape.options for inner in options_of(option))


def field_shape(record: Record, name: str) -> Shape:
    """The shape of a record's field, uses of the record itself filled in."""
    return unfolded(next(field.shape for field in record.fields if field.name == name), record)


def with_field(record: Record, name: str, shape: Shape) -> Record:
    """A record one of whose fields has another shape; uses of the record itself mean what they meant."""
    if field_shape(record, name) == shape:
        return record
    shapes = {field.name: field_shape(record, field.name) for field in record.fields} | {name: shape}
    return Record(record.name, tuple(Field(field.name, shapes[field.name], field.required) for field in record.fields))


def can_end(shape: Shape) -> bool:
    """Whether some finite value has the shape."""
    match shape:
        case Recursive():
            return False
        case Union(options=options):
            return any(map(can_end, options))
        case List(item=item, minimum=minimum):
            return not minimum or can_end(item)
        case Record(fields=fields):
            return all(can_end(field.shape) for field in fields if field.required)
    return True


@cache
def unfolded(shape: Shape, record: Record) -> Shape:
    """A shape from inside a record, with uses of that record filled in."""
    match shape:
        case Recursive(name=record.name):
            return record
        case Union(options=options):
            return Union(tuple(unfolded(option, record) for option in options))
        case List(item=item, minimum=minimum, maximum=maximum):
            return List(unfolded(item, record), minimum, maximum)
        case Dict(value=value):
            return Dict(unfolded(value, record))
        case Record(name=name, fields=fields) if name != record.name:
            return Record(
                name, tuple(Field(field.name, unfolded(field.shape, record), field.required) for field in fields)
            )
    return shape


def shape_of(value: Value) -> Shape | None:
    """The narrowest shape of a value; None for what has none (a branch)."""
    match value:
        case None:
            return Null()
        case str() | int() | float():
            return Constant(value)
        case list():
            items = [shape_of(item) for item in value]
            known = [item for item in items if item is not None]
            return (
                List(union(known), len(value), len(value))
                if known and len(known) == len(items)
                else List(AnyJson(), len(value), len(value))
            )
        case dict():
            known = [shape for item in value.values() if (shape := shape_of(item)) is not None]
            return Dict(union(known) if known else AnyJson())
    return None


def fits(shape: Shape, value: Value) -> bool:
    """Whether a value has a shape."""
    match shape, value:
        case Union(options=options), _:
            return any(fits(option, value) for option in options)
        case ((AnyJson() | Schema()), _):
            return not isinstance(value, RecordType)
        case Record(name=name), RecordValue():
            return value.name == name
        case Record(), dict():
            required = {field.name for field in shape.fields if field.required}
            names = {field.name for field in shape.fields}
            return required <= value.keys() <= names and all(
                fits(field_shape(shape, name), item) for name, item in value.items()
            )
        case List(item=item, minimum=minimum, maximum=maximum), list():
            return (minimum or 0) <= len(value) <= (len(value) if maximum is None else maximum) and all(
                fits(item, part) for part in value
            )
        case Dict(value=value_shape), dict():
            return all(fits(value_shape, item) for item in value.values())
        case ContextFree(), str():
            return True
        case _, (Parts() | list() | dict()):
            return False
    scalar = shape_of(value)
    return scalar is not None and assignable(scalar, shape)


def assignable(shape: Shape, target: Shape) -> bool:
    """Whether every value of `shape` may stand where `target` is asked for (an unsure case counts as yes)."""
    return _assignable(shape, target, frozenset())


def _assignable(shape: Shape, target: Shape, assumed: frozenset[tuple[Shape, Shape]]) -> bool:
    if shape == target or (shape, target) in assumed:
        return True
    assumed |= {(shape, target)}
    match shape, target:
        case ((AnyJson() | Schema()), _):
            return True
        case _, (AnyJson() | Schema()):
            return True
        case Union(options=options), _:
            return all(_assignable(option, target, assumed) for option in options)
        case _, Union(options=options):
            return any(_assignable(shape, option, assumed) for option in options)
        case List(), List():
            return _counts_overlap(shape, target) and _assignable(shape.item, target.item, assumed)
        case Dict(value=value), Dict(value=wanted):
            return _assignable(value, wanted, assumed)
        case Record(), Record():
            return _record_assignable(shape, target, assumed)
    return _scalar_in(shape, target)


def _counts_overlap(shape: List, target: List) -> bool:
    """Whether a list of one shape can have a length that the other allows."""
    most = [bound for bound in (shape.maximum, target.maximum) if bound is not None]
    return not most or max(shape.minimum or 0, target.minimum or 0) <= min(most)


def _record_assignable(shape: Record, target: Record, assumed: frozenset[tuple[Shape, Shape]]) -> bool:
    if [field.name for field in shape.fields] != [field.name for field in target.fields]:
        return False
    names = (field.name for field in shape.fields)
    return shape.name == target.name and all(
        _assignable(field_shape(shape, name), field_shape(target, name), assumed) for name in names
    )


def _scalar_in(shape: Shape, target: Shape) -> bool:
    """Whether a scalar shape may stand for another. Ranges and lengths that are not known at compile time are
    left to run time."""
    match shape, target:
        case Constant(value=bool() as value), _:
            return target in (Bool(), Constant(value))
        case Constant(value=str() as value), Str(maximum=maximum):
            return maximum is None or len(value) <= maximum
        case Constant(value=str() as value), Pattern(regex=regex):
            return _matches(regex, value)
        case Constant(value=str()), ContextFree():
            return True
        case Constant(value=int() as value), (Int(low=low, high=high) | Float(low=low, high=high)):
            return (low is None or low <= value) and (high is None or value <= high)
        case Constant(value=float() as value), Float(low=low, high=high):
            return (low is None or low <= value) and (high is None or value <= high)
        case Constant(value=value), Constant(value=other):
            return value == other and isinstance(value, str) == isinstance(other, str) and not isinstance(other, bool)
        case ((Str() | Pattern() | ContextFree()), (Str() | Pattern() | ContextFree())):
            return True
        case ((Str() | Pattern() | ContextFree()), Constant(value=str())):
            return True
        case ((Int(low=low, high=high) | Float(low=low, high=high)), (Int() | Float())):
            return not (isinstance(shape, Float) and isinstance(target, Int)) and _ranges_overlap(shape, target)
        case Int(low=low, high=high), Constant(value=int() as value):
            return not isinstance(value, bool) and (low is None or low <= value) and (high is None or value <= high)
        case Float(), Constant(value=float()):
            return True
        case Bool(), Constant(value=bool()):
            return True
    return False


def _ranges_overlap(shape: Int | Float, target: Int | Float) -> bool:
    low = max(bound for bound in (shape.low, target.low, float("-inf")) if bound is not None)
    high = min(bound for bound in (shape.high, target.high, float("inf")) if bound is not None)
    return low <= high


@cache
def _matches(regex: str, text: str) -> bool:
    # The engine behind it is slow to import, and few programs hold a fixed text against a pattern.
    from promptlang.grammar.acceptor import matches

    return matches(parse(regex), text)
