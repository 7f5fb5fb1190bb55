"""JSON data becomes the values that a program works with."""

from promptlang.grammar.reader import read
from promptlang.grammar.shapes import Constant, Field, Int, Null, Record, Recursive, Union
from promptlang.values.conversion import from_json, to_json
from promptlang.values.values import RecordValue

LEAF = Record("Leaf", (Field("kind", Constant("leaf")), Field("size", Int())))
NODE = Record("Node", (Field("kind", Constant("node")), Field("inner", Union((Recursive("Node"), LEAF, Null())))))


def test_the_record_that_the_data_fits_is_the_one_it_becomes() -> None:
    """Also inside a record that contains itself."""
    shape = Union((NODE, LEAF))
    text = '{"kind":"node","inner":{"kind":"node","inner":{"kind":"leaf","size":3}}}'
    value = from_json(shape, read(shape, text))
    names = []
    while isinstance(value, RecordValue):
        names.append(value.name)
        value = value.fields.get("inner")
    assert names == ["Node", "Node", "Leaf"]
    assert to_json(from_json(shape, read(shape, '{"kind":"leaf","size":3}'))) == {"kind": "leaf", "size": 3}
