"""Texts to values, and data against shapes."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shape_values import SCALARS, STRUCTURES, TREE, values

from examples import examples
from promptlang.grammar.reader import read, validate
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

LINE = Record("Line", (Field("name", Str(5)), Field("price", Float(0, None), required=False)))
TICKET = Record("Ticket", (Field("lines", List(LINE, 1, 3)), Field("note", Union((Null(), Str())))))


@pytest.mark.parametrize(
    ("shape", "text", "value"),
    [
        (Int(), "-12", -12),
        (Float(), "3", 3.0),
        (Float(0, 1), "0.25", 0.25),
        (Float(), "1e-3", 0.001),
        (Float(0, 1), "5E-1", 0.5),
        (Float(), "-.5", -0.5),
        (Float(0, 1), "0.1234567890123456", 0.1234567890123456),
        (Union((Int(), Float())), "2e0", 2.0),
        (Bool(), "true", True),
        (Null(), "none", None),
        (Str(), " any\ntext", " any\ntext"),
        (Constant("3"), "3", "3"),
        (Constant(3), "3", 3),
        (Constant(True), "true", True),
        (Constant(0.5), "0.5", 0.5),
        (Constant(1e-7), "0.0000001", 1e-7),
        (Pattern("[a-z]+"), "abc", "abc"),
        (Union((Constant("3"), Int())), "3", "3"),
        (Union((Int(), Str())), "3", 3),
        (Union((Null(), LINE)), '{"name":"x"}', {"name": "x"}),
        (List(Float()), "[1,2.5]", [1.0, 2.5]),
        (LINE, '{"name":"x","price":2}', {"name": "x", "price": 2.0}),
        (AnyJson(), '{"a":[null,1]}', {"a": [None, 1]}),
        (Schema('{"type":"integer"}'), "3", 3),
        (ContextFree('start: "a"+'), "aaa", "aaa"),
    ],
)
def test_a_text_becomes_the_value_it_stands_for(shape: Shape, text: str, value: Any) -> None:
    result = read(shape, text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("shape", "text"),
    [
        (Int(), "3.0"),
        (Int(), "٣"),
        (Int(), " 3"),
        (Int(), "1_000"),
        (Int(1, 5), "6"),
        (Float(0, 1), "1.5"),
        (Float(), "nan"),
        (Float(), "1e999"),
        (Float(0, 1), "1e1"),
        (Float(), "."),
        (Float(), "e5"),
        (Float(), "1_0.0"),
        (Int(), "1e3"),
        (Bool(), "True"),
        (Null(), "null"),
        (Str(2), "abc"),
        (Constant(3), "4"),
        (Pattern("[a-z]+"), "abC"),
        (Union((Int(), Bool())), "x"),
        (LINE, '{"name":"x"'),
        (LINE, '{"name":"toolong"}'),
        (LINE, "[]"),
        (AnyJson(), "NaN"),
        (AnyJson(), "[" * 100_000),
        (Schema('{"type":"integer"}'), '"3"'),
        (ContextFree('start: "a"+'), "b"),
    ],
)
def test_a_text_that_stands_for_no_value_is_refused(shape: Shape, text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read(shape, text)


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ({"lines": [{"name": "x"}, {"name": 3}], "note": None}, "lines[1].name: "),
        ({"lines": [{"name": "x", "price": -1}], "note": None}, "lines[0].price: "),
        ({"lines": [{"name": "x", "prize": 1}], "note": None}, "lines[0]: "),
        ({"lines": [{}], "note": None}, "lines[0]: "),
        ({"lines": [], "note": None}, "lines: "),
        ({"lines": [{"name": "x"}], "note": 3}, "note: "),
        ({"lines": [{"name": "x"}]}, "the field 'note'"),
        ("text", "expected Ticket"),
    ],
)
def test_a_misfit_is_named_with_its_place(value: Any, place: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        validate(TICKET, value)
    assert str(caught.value).startswith(place)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (Float(), 3),
        (Str(), "tab\tand bell\a"),
        (Int(), 10**30),
        (Constant(1.0), 1),
        (Dict(Int()), {"a": 1}),
        (TREE, {"value": 1, "children": [{"value": 2, "children": []}]}),
    ],
)
def test_data_that_fits(shape: Shape, value: Any) -> None:
    validate(shape, value)


@pytest.mark.parametrize(
    ("shape", "value"),
    [
        (Int(), "3"),
        (Int(), 3.0),
        (Int(), True),
        (Float(), True),
        (Float(), float("inf")),
        (Constant(1), True),
        (Constant(1), 1.0),
        (Bool(), 1),
        (Str(), None),
        (Str(), ["a"]),
        (List(Int()), "12"),
        (AnyJson(), {1: 2}),
        (AnyJson(), object()),
        (Pattern("(a|aa)+b"), "a" * 5000),
        (TREE, {"value": 1, "children": [{"value": 200, "children": []}]}),
    ],
)
def test_data_that_does_not_fit(shape: Shape, value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        validate(shape, value)


@pytest.mark.parametrize("shape", SCALARS + STRUCTURES, ids=repr)
@settings(deadline=None, max_examples=examples(15))
@given(data=st.data())
def test_every_value_of_a_shape_fits_it(shape: Shape, data: st.DataObject) -> None:
    validate(shape, data.draw(values(shape)))


LEAF = Record("Leaf", (Field("kind", Constant("leaf")), Field("size", Int())))
NODE = Record("Node", (Field("kind", Constant("node")), Field("inner", Union((LEAF, Recursive("Node"))))))


def test_what_is_wrong_with_a_tagged_record_is_said_of_the_record_that_is_meant() -> None:
    with pytest.raises(ValueError, match=r"^inner\.inner\.size: expected int"):
        validate(NODE, {"kind": "node", "inner": {"kind": "node", "inner": {"kind": "leaf", "size": "large"}}})
    with pytest.raises(ValueError, match="expected Leaf"):
        validate(Union((LEAF, NODE)), {"kind": "twig"})
