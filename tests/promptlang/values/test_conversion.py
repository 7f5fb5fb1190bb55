"""JSON data becomes the values that a program works with."""

from program_runner import graphs_of

from promptlang.grammar.reader import read
from promptlang.grammar.shapes import Constant, Field, Int, Null, Record, Recursive, Union
from promptlang.values.conversion import bind_arguments, from_json, to_json
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


def test_an_argument_that_contains_itself_becomes_records_at_every_depth() -> None:
    graph = graphs_of(
        """
        record Item:
            name: str
            box: Box | none


        record Box:
            items: list[Item | Box]


        program main(x: list[Item] | Item):
            "${x}"
        """
    )["main"]
    data = {"name": "a", "box": {"items": [{"name": "b", "box": None}, {"items": []}]}}
    one = bind_arguments(graph, {"x": data})["x"]
    assert isinstance(one, RecordValue)
    assert isinstance(one.fields["box"], RecordValue)
    inner = one.fields["box"].fields["items"]
    assert isinstance(inner, list)
    assert [item.name for item in inner if isinstance(item, RecordValue)] == ["Item", "Box"]
    assert to_json(bind_arguments(graph, {"x": [data]})["x"]) == [data]
