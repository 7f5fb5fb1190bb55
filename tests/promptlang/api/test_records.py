"""A file's records as classes, and results as objects of them."""

import dataclasses
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from program_runner import Runner

from promptlang.api.data import to_data
from promptlang.api.records import Records, records_of
from promptlang.api.types import answer_type
from promptlang.grammar.reader import read
from promptlang.session.program_file import ProgramFile
from promptlang.values.conversion import bind_arguments, from_json
from promptlang.values.values import AnsweredFloat, AnsweredInt, AnsweredText, answered

TEXT = """
record Line:
    item: str
    count: int in 1..9 = 1
    tags: list[str] = ["new"]

record Order:
    lines: list[Line]
    main: Line = Line("tea")
    note: str | none = none
    class: str

record Tree:
    name: str
    left: Tree | none
    right: Tree | none

program order(tree: Tree) -> Order:
    return Order([Line("tea", 2)], class="first")
"""


def records(text: str = TEXT) -> Records:
    (graph, *_) = ProgramFile.of_text(text).graphs.values()
    return records_of(graph.constants)


def value(made: Records, name: str, text: str) -> Any:
    shape = made.classes[name].__record__.shape
    return made.object(from_json(shape, read(shape, text)))


LINE = '{"item":"tea","count":2,"tags":[]}'
ORDER = f'{{"lines":[{LINE}],"main":{LINE},"note":null,"class":"first"}}'


def test_objects_are_frozen_data_with_equality_and_a_repr() -> None:
    made = records()
    line = value(made, "Line", LINE)
    assert repr(line) == "Line(item='tea', count=2, tags=[])"
    assert line == made.classes["Line"]("tea", 2, [])
    assert line != made.classes["Line"]("tea", 3, [])
    with pytest.raises(dataclasses.FrozenInstanceError):
        line.count = 3


def test_records_inside_records_are_objects() -> None:
    made = records()
    order = value(made, "Order", ORDER)
    line = made.classes["Line"]("tea", 2, [])
    assert order.lines == [line]
    assert order.main == line
    assert order.note is None
    assert order.class_ == "first"
    tree = value(made, "Tree", '{"name":"a","left":{"name":"b","left":null,"right":null},"right":null}')
    assert tree.left == made.classes["Tree"]("b", None, None)


def test_data_has_the_names_of_the_file() -> None:
    order = value(records(), "Order", ORDER)
    line = {"item": "tea", "count": 2, "tags": []}
    assert order.to_dict() == {"lines": [line], "main": line, "note": None, "class": "first"}


def test_defaults_are_those_of_the_file() -> None:
    made = records()
    line = made.classes["Line"]("tea")
    assert (line.count, line.tags) == (1, ["new"])
    line.tags.append("changed")
    assert made.classes["Line"]("tea").tags == ["new"]
    order = made.classes["Order"]([line], class_="first")
    assert (order.main, order.note) == (made.classes["Line"]("tea"), None)


def test_the_same_text_gives_the_same_classes() -> None:
    one, other = records(), records()
    assert one.classes["Line"] is other.classes["Line"]
    changed = records(TEXT.replace("= 1\n", "= 2\n"))
    assert changed.classes["Line"] is not one.classes["Line"]


def test_imported_records_go_by_the_name_of_the_import(tmp_path: Path) -> None:
    (tmp_path / "shop.pl").write_text("record Line:\n    item: str\n", encoding="utf-8")
    (tmp_path / "main.pl").write_text(
        'import "shop.pl" as shop\n\nrecord Line:\n    text: str\n\nrecord Order:\n    lines: list[shop.Line]\n\n'
        'program main() -> shop.Line:\n    return shop.Line("tea")\n',
        encoding="utf-8",
    )
    graph = ProgramFile.load(tmp_path / "main.pl").graphs["main"]
    made = records_of(graph.constants)
    assert list(made.classes) == ["Line", "Order", "shop.Line"]
    order = value(made, "Order", '{"lines":[{"item":"tea"}]}')
    assert order.lines == [made.classes["shop.Line"]("tea")]


def test_an_object_is_an_argument() -> None:
    file = ProgramFile.of_text(TEXT)
    graph = file.graphs["order"]
    made = records_of(graph.constants)
    tree = made.classes["Tree"]("a", made.classes["Tree"]("b", None, None), None)
    bound = bind_arguments(graph, {"tree": to_data(tree)})
    assert made.object(bound["tree"]) == tree


def test_a_records_class_is_a_type_of_answers() -> None:
    order = records().classes["Order"]
    kind = answer_type(order)
    assert kind.shape == order.__record__.shape
    assert kind.value(from_json(kind.shape, read(kind.shape, ORDER))) == value(records(), "Order", ORDER)
    line: Any = records().classes["Line"]
    lines = answer_type(list[line])
    assert lines.value(from_json(lines.shape, read(lines.shape, f"[{LINE}]"))) == [value(records(), "Line", LINE)]


def test_what_the_model_gave_is_plain() -> None:
    made = records()
    for text, number in ((answered("a", {}), answered(1, {})), (answered("b", {}), answered(0.5, {}))):
        found = made.object([text, {"inside": number}])
        assert found == [text, {"inside": number}]
        kinds = {type(found[0]), type(found[1]["inside"])}
        assert not kinds & {AnsweredText, AnsweredInt, AnsweredFloat}


def test_pickling() -> None:
    made = records()
    for found in (value(made, "Order", ORDER), made.classes["Line"], [made.classes["Tree"]("a", None, None)]):
        assert pickle.loads(pickle.dumps(found)) == found


ELSEWHERE = """
import dataclasses, pickle, sys
found = pickle.load(sys.stdin.buffer)
again = type(found)(*(getattr(found, field.name) for field in dataclasses.fields(found)))
assert again == found
sys.stdout.buffer.write(pickle.dumps((repr(found), again)))
"""


@pytest.mark.slow
def test_another_process_reads_what_was_pickled() -> None:
    tree = value(records(), "Tree", '{"name":"a","left":null,"right":null}')
    other = subprocess.run([sys.executable, "-c", ELSEWHERE], input=pickle.dumps(tree), capture_output=True, timeout=60)
    assert not other.stderr
    assert pickle.loads(other.stdout) == (repr(tree), tree)


BRANCHES = """
program main():
    user: "Say something."
    fork 2 as drafts:
        assistant: body = gen(min_tokens=2, max_tokens=3)
        text = "mine"
        line = Line("tea")
    fork as views:
        arm short:
            assistant: answer = gen(max_tokens=2)
        arm long:
            assistant: answer = gen(min_tokens=2, max_tokens=4)

record Line:
    item: str
"""


def test_branches_are_objects(tmp_path: Path) -> None:
    runner = Runner(tmp_path)
    variables = runner.outcome(BRANCHES).variables
    made = records_of(runner.graphs["main"].constants)
    drafts, views = made.object(variables["drafts"]), made.object(variables["views"])
    assert [draft.index for draft in drafts] == [0, 1]
    first = drafts[0]
    assert first.body == variables["drafts"][0].part("body")
    assert type(first.body) is str
    assert first.text == "mine"
    assert first.line == made.classes["Line"]("tea")
    assert first.logprob == variables["drafts"][0].part("logprob")
    assert first.to_dict() == {"body": first.body, "text": "mine", "line": {"item": "tea"}}
    assert to_data(drafts)[0] == first.to_dict()
    assert views.long.text == views.long.answer
    assert views.short.answer == variables["views"].part("short").part("answer")
    assert pickle.loads(pickle.dumps((drafts, views))) == (drafts, views)
    with pytest.raises(AttributeError, match=r"no 'nothing'; it has .*body"):
        _ = first.nothing
    with pytest.raises(dataclasses.FrozenInstanceError):
        first.body = "other"
