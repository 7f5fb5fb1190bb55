"""From text and data to values of a shape: what a constraint let the model write is read back, and what a user gives is
checked.

Values are `str`, `int`, `float`, `bool`, `None`, `list` and `dict` (records too, in field order).
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from promptlang.grammar.acceptor import accepts, matches
from promptlang.grammar.json_schema.decimals import Written, with_floats
from promptlang.grammar.notation import to_grammar
from promptlang.grammar.regular.regex_parser import parse
from promptlang.grammar.regular.scalars import bare, constant_text
from promptlang.grammar.shapes import (
    AnyJson,
    Bool,
    Constant,
    ContextFree,
    Dict,
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
    describe,
)

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
"""A number as people write it: more ways than an answer may be written in."""


def read(shape: Shape, text: str) -> Any:
    """The value that a text stands for: the inverse of writing under the shape's constraint.

    Raises:
        ValueError: it stands for none; `str()` says what was expected.
    """
    match shape:
        case Union(options=options):
            return _first_read(options, text)
        case Str() | Pattern() | ContextFree():
            return _fit(shape, text, "", {})
        case Constant(value=value) if text == constant_text(value):
            return value
        case Float() if _NUMBER.fullmatch(text):
            return _fit(shape, float(text), "", {})
        case Constant() | Int() | Float() | Bool() | Null():
            return _read_scalar(shape, text)
    return with_floats(_fit(shape, _load(text), "", {}))


def _first_read(options: tuple[Shape, ...], text: str) -> Any:
    for option in options:
        try:
            return read(option, text)
        except ValueError:
            continue
    raise ValueError(f"expected {describe(Union(options))}, not {text!r}")


def _read_scalar(shape: Shape, text: str) -> Any:
    regular = bare(shape)
    if regular is None or not matches(regular, text):
        raise ValueError(f"expected {describe(shape)}, not {text!r}")
    if isinstance(shape, Int):
        return int(text)
    return {"true": True, "false": False, "none": None}[text]


def _load(text: str) -> Any:
    try:
        return json.loads(text, parse_float=_written, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("the JSON nests too deep to be read") from error


def _written(text: str) -> Written:
    number = Written(text)
    if not math.isfinite(number):
        raise ValueError(f"{text} is too large a number")
    return number


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def validate(shape: Shape, value: Any, enclosing: Mapping[str, Record] | None = None) -> None:
    """Check JSON data against a shape.

    Args:
        shape: which.
        value: the data.
        enclosing: records around this place, by name (for recursive ones).

    Raises:
        ValueError: it doesn't fit; `str()` says where (`lines[2].name`), what was expected, and what there is.
    """
    _fit(shape, value, "", enclosing or {})


def _fit(shape: Shape, value: Any, place: str, records: Mapping[str, Record]) -> Any:
    """The data as a value of the shape: whole numbers become floats where floats are asked for."""
    match shape:
        case Union(options=options):
            return _first_fit(options, value, place, records)
        case List(item=item) if isinstance(value, list):
            _check_length(shape, value, place)
            return [_fit(item, element, f"{place}[{index}]", records) for index, element in enumerate(value)]
        case Dict(value=item) if isinstance(value, dict):
            return {key: _fit(item, element, f"{place}[{key!r}]", records) for key, element in value.items()}
        case Record() if isinstance(value, dict):
            return _fit_record(shape, value, place, {**records, shape.name: shape})
        case Recursive(name=name):
            return _fit(records[name], value, place, records)
        case Schema(text=text):
            return _fit_schema(text, value, place)
        case Float() if _is_scalar_of(shape, value):
            return float(value)
    if not _is_scalar_of(shape, value):
        raise _misfit(place, f"expected {describe(shape)}, not {_show(value)}")
    return value


def _first_fit(options: tuple[Shape, ...], value: Any, place: str, records: Mapping[str, Record]) -> Any:
    for option in options:
        try:
            return _fit(option, value, place, records)
        except ValueError:
            continue
    meant = [record for option in options if (record := _tagged(option, value, records)) is not None]
    if len(meant) == 1:
        return _fit(meant[0], value, place, records)
    raise _misfit(place, f"expected {describe(Union(options))}, not {_show(value)}")


def _tagged(option: Shape, value: Any, records: Mapping[str, Record]) -> Record | None:
    """A record whose constants the data has: it is meant, whatever else is wrong with it."""
    record = records[option.name] if isinstance(option, Recursive) else option
    if not isinstance(record, Record) or not isinstance(value, dict):
        return None
    tags = [field for field in record.fields if isinstance(field.shape, Constant)]
    is_meant = tags and all(_is_scalar_of(tag.shape, value.get(tag.name)) for tag in tags)
    return record if is_meant else None


def _fit_record(record: Record, value: dict[str, Any], place: str, records: Mapping[str, Record]) -> dict[str, Any]:
    names = [field.name for field in record.fields]
    for name in value:
        if name not in names:
            raise _misfit(place, f"{record.name} has no field {name!r}")
    for field in record.fields:
        if field.required and field.name not in value:
            raise _misfit(place, f"the field {field.name!r} of {record.name} is missing")
    return {
        field.name: _fit(field.shape, value[field.name], f"{place}.{field.name}" if place else field.name, records)
        for field in record.fields
        if field.name in value
    }


def _fit_schema(text: str, value: Any, place: str) -> Any:
    from promptlang.grammar.json_schema.instances import check_instance  # loaded only where a program uses a schema

    if not _is_json(value):
        raise _misfit(place, f"expected JSON, not {_show(value)}")
    try:
        check_instance(text, value)
    except ValueError as error:
        raise _misfit(place, str(error)) from error
    return value


def _check_length(shape: List, value: list[Any], place: str) -> None:
    if len(value) < (shape.minimum or 0) or (shape.maximum is not None and len(value) > shape.maximum):
        raise _misfit(place, f"expected {describe(shape)}, not one of {len(value)} items")


def _is_scalar_of(shape: Shape, value: Any) -> bool:
    match shape:
        case Str(maximum=maximum):
            return isinstance(value, str) and (maximum is None or len(value) <= maximum)
        case Int(low=low, high=high):
            return isinstance(value, int) and not isinstance(value, bool) and _is_between(low, value, high)
        case Float(low=low, high=high):
            return _is_number(value) and math.isfinite(value) and _is_between(low, value, high)
        case Bool():
            return isinstance(value, bool)
        case Null():
            return value is None
        case Constant(value=constant):
            return value == constant and (
                type(value) is type(constant) or (_is_number(value) and isinstance(constant, float))
            )
        case Pattern(regex=pattern):
            return isinstance(value, str) and matches(parse(pattern), value)
        case ContextFree():
            return isinstance(value, str) and accepts(to_grammar(shape, ""), value)
        case AnyJson():
            return _is_json(value)
    return False


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_between(low: float | None, value: float, high: float | None) -> bool:
    return (low is None or low <= value) and (high is None or value <= high)


def _is_json(value: Any) -> bool:
    match value:
        case dict():
            return all(isinstance(key, str) and _is_json(item) for key, item in value.items())
        case list():
            return all(map(_is_json, value))
        case float():
            return math.isfinite(value)
    return value is None or isinstance(value, str | int)


def _misfit(place: str, what: str) -> ValueError:
    return ValueError(f"{place}: {what}" if place else what)


SHOWN = 60
"""Characters of a value that a message shows."""


def _show(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
