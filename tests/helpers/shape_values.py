"""Shapes, their values, and a check of a text against a shape that shares nothing with the code under test."""

import json
import random
import re
from typing import Any

from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from promptlang.grammar.shapes import (
    AnyJson,
    Bool,
    Constant,
    Dict,
    Field,
    Float,
    Int,
    List,
    Null,
    Pattern,
    Record,
    Recursive,
    Shape,
    Str,
    Union,
)

PATTERNS = [r"[A-Z]{3}-\d+", r'["\\/a-c]{0,4}', r"(ab|c)*d", r"[^\n]{1,6}", r"\w+@\w+\.(com|org)", "[é-ü世🙂]{1,3}"]

TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]) | st.sampled_from("\n\t"))

SCALARS: list[Shape] = [
    Str(),
    Str(5),
    Int(),
    Int(1, 120),
    Int(-7, 3),
    Float(),
    Float(0, 1),
    Float(-2.5, 0.125),
    Bool(),
    Null(),
    Constant("billing"),
    Constant('quote " and \\'),
    Constant(12),
    Constant(0.5),
    *map(Pattern, PATTERNS),
    Union((Constant("new"), Constant("newer"), Constant("ünïcode"))),
    Union((Null(), Int(0, 9))),
]

TREE = Record("Tree", (Field("value", Int(0, 99)), Field("children", List(Recursive("Tree"), None, 2))))

REPLY = Record(
    "Reply",
    (Field("team", Union((Constant("a"), Constant("b")))), Field("urgency", Int(1, 5)), Field("body", Str(9))),
)

STRUCTURES: list[Shape] = [
    List(Int(0, 9), 1, 3),
    List(Str(3)),
    List(Bool(), 2, 2),
    List(Null(), 0, 0),
    Dict(Float(0, 1)),
    Record("Empty", ()),
    REPLY,
    Record("Optional", tuple(Field(name, Int(0, 9), required=name == "c") for name in "abcd")),
    Record("AllOptional", (Field("x", Pattern('"+'), False), Field("y", Bool(), False))),
    TREE,
    Record("Outer", (Field("inner", Record("Inner", (Field("tree", TREE),))), Field("note", Union((Null(), Str(4)))))),
    Union((Record("A", (Field("k", Constant("x")), Field("n", Bool()))), Record("B", (Field("k", Pattern("x|y")),)))),
    List(Union((Int(0, 9), Str(2), TREE))),
    Union((Null(), TREE)),
    AnyJson(),
]  # fmt: skip


def values(shape: Shape, records: dict[str, Record] | None = None) -> st.SearchStrategy[Any]:
    """Values of a shape."""
    known = records or {}
    match shape:
        case Str(maximum=maximum):
            return TEXTS.map(lambda text: text[:maximum])
        case Int(low=low, high=high):
            return st.integers(-(10**18) + 1 if low is None else low, 10**18 - 1 if high is None else high)
        case Float(low=low, high=high):
            return st.decimals(
                -9999 if low is None else low, 9999 if high is None else high, places=3, allow_nan=False
            ).map(float)
        case Bool():
            return st.booleans()
        case Null():
            return st.none()
        case Constant(value=value):
            return st.just(value)
        case Pattern(regex=pattern):
            return st.from_regex(re.compile(pattern, re.ASCII), fullmatch=True).filter(is_plain)
        case Union(options=options):
            return st.one_of([values(option, known) for option in options])
        case List(item=item, minimum=minimum, maximum=maximum):
            most = min(3, 3 if maximum is None else maximum)
            return st.lists(values(item, known), min_size=minimum or 0, max_size=most)
        case Dict(value=item):
            return st.dictionaries(TEXTS, values(item, known), max_size=2)
        case Record():
            return record_values(shape, {**known, shape.name: shape})
        case Recursive(name=name):
            return st.deferred(lambda: values(known[name], known))
        case AnyJson():
            leaves = st.none() | st.booleans() | st.integers(-99, 99) | TEXTS
            return st.recursive(
                leaves, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXTS, inner, max_size=2)
            )
    raise TypeError(shape)


def is_plain(text: str) -> bool:
    return not any(0xD800 <= ord(character) <= 0xDFFF for character in text)


@st.composite
def record_values(draw: st.DrawFn, record: Record, known: dict[str, Record]) -> dict[str, Any]:
    present = [field for field in record.fields if field.required or draw(st.booleans())]
    return {field.name: draw(values(field.shape, known)) for field in present}


def write(shape: Shape, value: Any) -> str:
    """A value as a model would write it."""
    if isinstance(value, dict | list) or shape == AnyJson():
        return compact(value)
    if isinstance(value, str):
        return value
    return "none" if value is None else plain_number(value)


def compact(value: Any) -> str:
    """JSON without white space, escapes only where they must be, and no exponents."""
    match value:
        case dict():
            return "{" + ",".join(f"{compact(key)}:{compact(item)}" for key, item in value.items()) + "}"
        case list():
            return "[" + ",".join(map(compact, value)) + "]"
        case str() | None:
            return json.dumps(value, ensure_ascii=False)
    return plain_number(value)


def plain_number(value: bool | int | float) -> str:
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    return json.dumps(value)


def schema_of(shape: Shape) -> dict[str, Any]:
    """A JSON Schema that says the same."""
    match shape:
        case Str(maximum=maximum):
            return {"type": "string"} if maximum is None else {"type": "string", "maxLength": maximum}
        case Int(low=low, high=high):
            return _bounds({"type": "integer"}, "imum", low, high)
        case Float(low=low, high=high):
            return _bounds({"type": "number"}, "imum", low, high)
        case Bool():
            return {"type": "boolean"}
        case Null():
            return {"type": "null"}
        case Constant(value=value):
            return {"const": value}
        case Pattern():
            return {"type": "string"}
        case Union(options=options):
            return {"anyOf": [schema_of(option) for option in options]}
        case List(item=item, minimum=minimum, maximum=maximum):
            return _bounds({"type": "array", "items": schema_of(item)}, "Items", minimum, maximum)
        case Dict(value=item):
            return {"type": "object", "additionalProperties": schema_of(item)}
        case Record(name=name, fields=fields):
            return {
                "$id": f"urn:{name}",
                "type": "object",
                "properties": {field.name: schema_of(field.shape) for field in fields},
                "required": [field.name for field in fields if field.required],
                "additionalProperties": False,
            }
        case Recursive(name=name):
            return {"$ref": f"urn:{name}"}
        case AnyJson():
            return {}
    raise TypeError(shape)


def _bounds(schema: dict[str, Any], suffix: str, low: float | None, high: float | None) -> dict[str, Any]:
    given = {"min" + suffix: low, "max" + suffix: high}
    return schema | {key: bound for key, bound in given.items() if bound is not None}


def fits(shape: Shape, text: str) -> bool:
    """Whether a text is a value of a shape, by Python's `re` and the `jsonschema` package."""
    match shape:
        case Str(maximum=maximum):
            return maximum is None or len(text) <= maximum
        case Pattern(regex=pattern):
            return re.fullmatch(pattern, text, re.ASCII) is not None
        case Constant(value=str(value)):
            return text == value
        case Null():
            return text == "none"
        case Union(options=options):
            return any(fits(option, text) for option in options)
    return Draft202012Validator(schema_of(shape)).is_valid(json.loads(text))


def pick(random_source: random.Random, tokens: list[int], token_bytes: list[bytes]) -> int:
    """A legal token, short ones more often."""
    return min(random_source.sample(tokens, min(3, len(tokens))), key=lambda token: len(token_bytes[token]))
