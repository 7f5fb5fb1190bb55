"""From annotations to shapes and back: what the model may write, and what Python gets."""

import enum
import unittest.mock
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, Union

import annotated_types
import pydantic
import pytest
import typing_extensions
from typing_extensions import TypeAliasType

from promptlang.api.data import to_data
from promptlang.api.errors import AnnotationError, MarkError
from promptlang.api.marks import Grammar, Length, MaxLength, Pattern, Range, Schema
from promptlang.api.types import answer_type
from promptlang.grammar import shapes
from promptlang.grammar.reader import read
from promptlang.values.conversion import from_json


def answer(annotation: Any, text: str) -> Any:
    """What Python gets when the model wrote a text."""
    kind = answer_type(annotation)
    return kind.value(from_json(kind.shape, read(kind.shape, text)))


def shape(annotation: Any) -> shapes.Shape:
    return answer_type(annotation).shape


class Team(enum.Enum):
    BILLING = "billing"
    NETWORK = "network"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass(frozen=True)
class Draft:
    body: str
    score: Annotated[int, Range(1, 5)] = 3


@dataclass
class Node:
    name: str
    next: Optional["Node"] = None
    children: "list[Node]" = field(default_factory=list)


@dataclass
class Odd:
    even: "Even | None"


@dataclass
class Even:
    odd: "Odd | None"


class Point(NamedTuple):
    x: float
    y: float = 0.0


class Base(TypedDict):
    title: str


class Note(Base, total=False):
    pages: int
    author: "typing_extensions.Required[str]"


class Circle(TypedDict):
    kind: Literal["circle"]
    radius: int


@dataclass
class Square:
    kind: Literal["square"]
    side: int


class Ticket(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    team: Team
    priority: int = pydantic.Field(ge=1, le=5)
    lines: list[Draft] = pydantic.Field(default=[], alias="drafts", max_length=2)

    @pydantic.field_validator("priority")
    @classmethod
    def not_four(cls, value: int) -> int:
        if value == 4:
            raise ValueError("never 4")
        return value


class Tree(pydantic.BaseModel):
    name: str
    branches: "list[Tree]" = []


T = TypeVar("T")
UserId = NewType("UserId", int)
Score: TypeAliasType = TypeAliasType("Score", Annotated[int, Range(0, 9)])


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        (str, shapes.Str()),
        (int, shapes.Int()),
        (float, shapes.Float()),
        (bool, shapes.Bool()),
        (None, shapes.Null()),
        (Any, shapes.AnyJson()),
        (object, shapes.AnyJson()),
        (Literal["a", 1, True, None], shapes.Union((*map(shapes.Constant, ("a", 1, True)), shapes.Null()))),
        (int | None, shapes.Union((shapes.Int(), shapes.Null()))),
        (Optional[int], shapes.Union((shapes.Int(), shapes.Null()))),  # noqa: UP045
        (Union[int, str], shapes.Union((shapes.Int(), shapes.Str()))),  # noqa: UP007
        (list[int], shapes.List(shapes.Int())),
        (list, shapes.List(shapes.AnyJson())),
        (Sequence[int], shapes.List(shapes.Int())),
        (tuple[int, ...], shapes.List(shapes.Int())),
        (dict[str, bool], shapes.Dict(shapes.Bool())),
        (Mapping[str, int], shapes.Dict(shapes.Int())),
        (dict, shapes.Dict(shapes.AnyJson())),
        (Team, shapes.Union((shapes.Constant("billing"), shapes.Constant("network")))),
        (Level, shapes.Union((shapes.Constant(1), shapes.Constant(2)))),
        (Literal[Team.NETWORK], shapes.Constant("network")),
        (UserId, shapes.Int()),
        (Score, shapes.Int(0, 9)),
        (Annotated[int, Range(1, 5)], shapes.Int(1, 5)),
        (Annotated[int, Range(0.5, 5.5)], shapes.Int(1, 5)),
        (Annotated[float, Range(0, 1)], shapes.Float(0, 1)),
        (Annotated[int | None, Range(1, 5)], shapes.Union((shapes.Int(1, 5), shapes.Null()))),
        (Annotated[str, Pattern(r"[A-Z]{3}")], shapes.Pattern(r"[A-Z]{3}")),
        (Annotated[str, MaxLength(40)], shapes.Str(40)),
        (Annotated[str, "what it is for", MaxLength(40)], shapes.Str(40)),
        (Annotated[list[str], Length(1, 5)], shapes.List(shapes.Str(), 1, 5)),
        (Annotated[Any, Schema({"type": "integer"})], shapes.Schema('{"type":"integer"}')),
        (Annotated[str, Grammar('start: "a"')], shapes.ContextFree('start: "a"')),
        (Annotated[int, annotated_types.Ge(1), annotated_types.Le(5)], shapes.Int(1, 5)),
        (Annotated[int, annotated_types.Gt(1), annotated_types.Lt(5)], shapes.Int(2, 4)),
        (Annotated[int, annotated_types.Interval(ge=1, lt=5)], shapes.Int(1, 4)),
        (Annotated[int, Range(1, 5), annotated_types.Ge(3)], shapes.Int(3, 5)),
        (Annotated[str, annotated_types.MaxLen(9)], shapes.Str(9)),
        (Annotated[list[int], annotated_types.Len(1, 3)], shapes.List(shapes.Int(), 1, 3)),
        (Annotated[list[int], annotated_types.MinLen(1)], shapes.List(shapes.Int(), 1)),
        (Annotated[int, pydantic.Field(ge=1, le=5, description="how good")], shapes.Int(1, 5)),
        (Annotated[str, pydantic.Field(pattern="^[a-z]+$")], shapes.Pattern("[a-z]+")),
        (Annotated[str, pydantic.Field(pattern="^(a|b)$")], shapes.Pattern("(a|b)")),
        (Annotated[str, pydantic.Field(description="a name")], shapes.Str()),
        (Annotated[int, annotated_types.Ge(0), annotated_types.Le(float("inf"))], shapes.Int(0)),
        (Annotated[int, unittest.mock.Mock(metadata=3, func=None)], shapes.Int()),
    ],
)
def test_shapes(annotation: Any, expected: shapes.Shape) -> None:
    assert shape(annotation) == expected


def record(name: str, /, **fields: shapes.Shape) -> shapes.Record:
    return shapes.Record(name, tuple(shapes.Field(field, shape) for field, shape in fields.items()))


def test_classes_with_fields_are_records() -> None:
    assert shape(Draft) == record("Draft", body=shapes.Str(), score=shapes.Int(1, 5))
    assert shape(Point) == record("Point", x=shapes.Float(), y=shapes.Float())
    assert shape(Note) == shapes.Record(
        "Note",
        (
            shapes.Field("title", shapes.Str()),
            shapes.Field("pages", shapes.Int(), required=False),
            shapes.Field("author", shapes.Str()),
        ),
    )
    assert shape(Node) == record(
        "Node",
        name=shapes.Str(),
        next=shapes.Union((shapes.Recursive("Node"), shapes.Null())),
        children=shapes.List(shapes.Recursive("Node")),
    )


@pytest.mark.parametrize(
    ("annotation", "text", "expected"),
    [
        (str, "hello", "hello"),
        (float, "3", 3.0),
        (int | str, "3", 3),
        (str | int, "3", "3"),
        (Literal["a", 1], "1", 1),
        (Team, "network", Team.NETWORK),
        (Level, "2", Level.HIGH),
        (list[Team], '["billing"]', [Team.BILLING]),
        (tuple[int, ...], "[1,2]", (1, 2)),
        (Sequence[float], "[1,2]", [1.0, 2.0]),
        (dict[str, Level | None], '{"a":1,"b":null}', {"a": Level.LOW, "b": None}),
        (Draft, '{"body":"Hi","score":5}', Draft("Hi", 5)),
        (Draft | None, "none", None),
        (Point, '{"x":1,"y":2}', Point(1.0, 2.0)),
        (Note, '{"title":"a","author":"b"}', {"title": "a", "author": "b"}),
        (Circle | Square, '{"kind":"square","side":2}', Square("square", 2)),
        (Circle | Square, '{"kind":"circle","radius":2}', {"kind": "circle", "radius": 2}),
        (
            Node,
            '{"name":"a","next":{"name":"b","next":null,"children":[]},"children":[]}',
            Node("a", Node("b")),
        ),
        (Odd, '{"even":{"odd":{"even":null}}}', Odd(Even(Odd(None)))),
        (UserId, "7", 7),
        (Annotated[dict[str, Any], Schema({"type": "object"})], '{"a":[1]}', {"a": [1]}),
        (Annotated[Draft, Schema({"type": "object"})], '{"body":"a","score":1}', Draft("a", 1)),
        (Annotated[int, annotated_types.MultipleOf(5), Range(0, 20)], "15", 15),
        (Annotated[float, annotated_types.Gt(0)], "0.5", 0.5),
        (Annotated[str, annotated_types.MinLen(2)], "ab\n", "ab\n"),
        (Tree, '{"name":"a","branches":[{"name":"b","branches":[]}]}', Tree(name="a", branches=[Tree(name="b")])),
        (
            Ticket,
            '{"team":"billing","priority":5,"drafts":[{"body":"a","score":1}]}',
            Ticket(team=Team.BILLING, priority=5, drafts=[Draft("a", 1)]),
        ),
    ],
)
def test_answers(annotation: Any, text: str, expected: object) -> None:
    found = answer(annotation, text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("annotation", "text"),
    [
        (Annotated[int, annotated_types.MultipleOf(5), Range(0, 20)], "7"),
        (Annotated[float, annotated_types.Gt(0)], "0"),
        (Annotated[str, annotated_types.MinLen(2)], "a"),
        (Note, '{"title":"a"}'),
        (Draft, '{"body":"a","score":6}'),
        (Draft, '{"body":"a"}'),
    ],
)
def test_what_answers_cannot_be(annotation: Any, text: str) -> None:
    with pytest.raises(ValueError, match=r"expected|missing|multiple|minimum|greater|less"):
        answer(annotation, text)


def test_pydantic_has_the_last_word() -> None:
    with pytest.raises(pydantic.ValidationError, match="never 4"):
        answer(Ticket, '{"team":"billing","priority":4,"drafts":[]}')


def test_a_model_with_types_of_its_own_goes_by_its_schema() -> None:
    import datetime

    class Meeting(pydantic.BaseModel):
        on: datetime.date

    assert isinstance(shape(Meeting), shapes.Schema)
    assert answer(Meeting, '{"on":"2026-01-31"}') == Meeting(on=datetime.date(2026, 1, 31))


def test_a_class_inside_a_function_may_mean_itself() -> None:
    @dataclass
    class Local:
        inner: "Local | None"

    assert answer(Local, '{"inner":{"inner":null}}') == Local(Local(None))


def test_two_classes_of_one_name_are_two_records() -> None:
    def other() -> type:
        @dataclass
        class Draft:
            title: str

        return Draft

    other_draft = other()

    @dataclass
    class Both:
        one: Draft
        two: other_draft  # type: ignore[valid-type]

    Both.__annotations__["two"] = other_draft
    assert answer(Both, '{"one":{"body":"a","score":1},"two":{"title":"b"}}') == Both(Draft("a", 1), other_draft("b"))


def test_the_same_annotation_is_read_once() -> None:
    assert answer_type(Annotated[int, Range(1, 5)]) is answer_type(Annotated[int, Range(1, 5)])
    assert answer_type(int | str) is not answer_type(str | int)
    assert shape(Annotated[int, ["a list is no key"]]) == shapes.Int()


@dataclass
class Forever:
    again: "Forever"


@dataclass
class Lost:
    what: "Nowhere"  # type: ignore[name-defined] # noqa: F821


@dataclass
class Box(Generic[T]):
    inside: T


@dataclass
class Asking:
    size: int
    unit: InitVar[str]
    half: float = field(init=False, default=0.0)


@dataclass
class Halved:
    size: int
    unit: InitVar[str] = "cm"
    half: float = field(init=False)

    def __post_init__(self, unit: str) -> None:
        if self.size < 0:
            raise ValueError("a size below 0")
        self.half = self.size / 2


def test_a_dataclass_is_made_from_the_fields_it_takes() -> None:
    assert answer(Halved, '{"size":3}').half == 1.5
    with pytest.raises(ValueError, match="below 0"):
        answer(Halved, '{"size":-3}')


class Empty(enum.Enum):
    pass


class Flags(enum.Flag):
    A = 1


class EndlessAlias:
    """As `type Endless = list[Endless]` is, which Python 3.11 can't say."""

    __name__ = "Endless"

    @property
    def __value__(self) -> Any:
        return list[self]  # type: ignore[valid-type]


ENDLESS = EndlessAlias()


@pytest.mark.parametrize(
    ("annotation", "told"),
    [
        (bytes, "write str"),
        (set[int], r"write list\[\.\.\.\]"),
        (tuple[int, str], "NamedTuple"),
        (complex, "write float"),
        (dict[int, str], "keys that aren't str"),
        (Callable[[], int], "is no type of an answer"),
        ("Draft", "'Draft' is not known here"),
        (list["Draft"], "'Draft' is not known here"),
        (Literal[b"a"], "holds b'a'"),
        (Forever, "no text can hold a whole Forever"),
        (list[Forever], "no text can hold a whole Forever"),
        (Lost, "'Nowhere'"),
        (Empty, "no members"),
        (Box, "stands for no type"),
        (Box[int], "is generic"),
        (Asking, "needs 'unit'"),
        (Flags, "Flag"),
        (str | list[int], "ambiguous"),
        (Annotated[str, Range(1, 5)], "str has no such limits"),
        (Annotated[int, MaxLength(5)], "int has no such limits"),
        (Annotated[int, annotated_types.Ge(5), annotated_types.Le(1)], "nothing lies"),
        (Annotated[int, Range(0.2, 0.8)], "nothing lies"),
        (Annotated[str, Pattern("a"), MaxLength(5)], "can't both be held"),
        (Annotated[str, Pattern("a"), Pattern("b")], "two limits of one kind"),
        (Annotated[int, annotated_types.Predicate(bool)], "Predicate can't be enforced"),
        (Annotated[int, Grammar("start: /a/")], "describes text"),
        (Annotated[str, Grammar("start: nothing")], "nothing"),
        (Annotated[Any, Schema({"type": "object", "minProperties": "x"})], "minProperties"),
        (ENDLESS, "made of itself"),
        (Annotated[str, pydantic.Field(pattern="a|b")], "searched for"),
    ],
)
def test_annotations_that_no_answer_can_have(annotation: Any, told: str) -> None:
    with pytest.raises(AnnotationError, match=told):
        answer_type(annotation)


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Range(5, 1), r"write Range\(1, 5\)"),
        (lambda: Range("a", 1), "numbers"),  # type: ignore[arg-type]
        (lambda: Range(0, float("nan")), "finite"),
        (lambda: Pattern("["), "can't be compiled"),
        (lambda: Pattern("(?=a)"), "lookahead"),
        (lambda: MaxLength(0), "at least 1"),
        (lambda: Length(5, 1), r"write Length\(1, 5\)"),
        (lambda: Length(-1), "at least 0"),
        (lambda: Schema("no/such/file.json"), "can't be read"),
        (lambda: Schema({"a": object()}), "no JSON"),
        (lambda: Grammar(3), "text"),  # type: ignore[arg-type]
    ],
)
def test_marks_are_checked_when_they_are_made(make: Callable[[], object], told: str) -> None:
    with pytest.raises(MarkError, match=told):
        make()


def test_a_schema_from_a_file(tmp_path: Any) -> None:
    (tmp_path / "a.json").write_text('{"type": "integer"}', encoding="utf-8")
    assert shape(Annotated[int, Schema(tmp_path / "a.json")]) == shapes.Schema('{"type":"integer"}')
    assert Schema({"type": "integer"}) == Schema(tmp_path / "a.json")


def test_a_type_that_is_too_large_is_refused_quickly() -> None:
    inner: Any = int
    for number in range(30):
        inner = TypedDict(f"Level{number}", {"a": inner, "b": inner})  # type: ignore[operator, misc]  # noqa: UP013
    with pytest.raises(AnnotationError, match="too many parts"):
        answer_type(inner)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ("a", "a"),
        (Team.BILLING, "billing"),
        (Level.HIGH, 2),
        ((1, 2), [1, 2]),
        (Point(1, 2), {"x": 1, "y": 2}),
        ({"a": Draft("b")}, {"a": {"body": "b", "score": 3}}),
        (Node("a", Node("b")), {"name": "a", "next": {"name": "b", "next": None, "children": []}, "children": []}),
        (
            Ticket(team=Team.BILLING, priority=1, drafts=[]),
            {"team": "billing", "priority": 1, "drafts": []},
        ),
    ],
)
def test_objects_as_data(value: object, data: object) -> None:
    assert to_data(value) == data


@pytest.mark.parametrize("value", [{1, 2}, object(), Draft, {1: "a"}, b"a"])
def test_what_is_no_data(value: object) -> None:
    with pytest.raises(TypeError, match=r"no data|no str"):
        to_data(value)


@pytest.mark.parametrize("found", [Draft("a", 2), Point(1.0, 2.0), Node("a", Node("b")), Team.NETWORK, (1, 2)])
def test_data_of_an_object_is_an_answer_of_its_type(found: object) -> None:
    annotation = tuple[int, ...] if type(found) is tuple else type(found)
    kind = answer_type(annotation)
    assert kind.value(from_json(kind.shape, to_data(found))) == found
