"""What a type checker infers of answers: each line is held by mypy and pyright, with no flag; and it runs."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict, assert_type

import annotated_types
import pydantic
from typing_extensions import TypeAliasType

from promptlang.api.marks import MaxLength, Pattern, Range
from promptlang.api.options import options_of
from promptlang.api.types import AnswerType, answer_type


class Team(enum.Enum):
    BILLING = "billing"
    NETWORK = "network"


@dataclass(frozen=True)
class Draft:
    body: str
    score: Annotated[int, Range(1, 5)]


class Note(TypedDict):
    title: str


class Point(NamedTuple):
    x: float


class Ticket(pydantic.BaseModel):
    team: Team


UserId = NewType("UserId", int)
Stars = Annotated[int, Range(1, 5)]
Kept = TypeAliasType("Kept", list[int])

assert_type(answer_type(str), AnswerType[str])
assert_type(answer_type(None), AnswerType[None])
assert_type(answer_type(Any), AnswerType[Any])
assert_type(answer_type(Draft), AnswerType[Draft])
assert_type(answer_type(Note), AnswerType[Note])
assert_type(answer_type(Point), AnswerType[Point])
assert_type(answer_type(Ticket), AnswerType[Ticket])
assert_type(answer_type(Team), AnswerType[Team])
assert_type(answer_type(UserId), AnswerType[UserId])
assert_type(answer_type(Annotated[int, Range(1, 5)]), AnswerType[int])
assert_type(answer_type(Annotated[str, Pattern("[a-z]+")]), AnswerType[str])
assert_type(answer_type(Annotated[str, MaxLength(40)]), AnswerType[str])
assert_type(answer_type(Annotated[int, annotated_types.Ge(1)]), AnswerType[int])
assert_type(answer_type(Stars), AnswerType[int])
assert_type(answer_type(Kept), AnswerType[list[int]])
assert_type(answer_type(Literal["a", "b"]), AnswerType[Literal["a", "b"]])
assert_type(answer_type(int | None), AnswerType[int | None])
assert_type(answer_type(Draft | Note), AnswerType[Draft | Note])
assert_type(answer_type(list[Draft]), AnswerType[list[Draft]])
assert_type(answer_type(Sequence[int]), AnswerType[Sequence[int]])
assert_type(answer_type(tuple[int, ...]), AnswerType[tuple[int, ...]])
assert_type(answer_type(dict[str, list[Team]]), AnswerType[dict[str, list[Team]]])

assert_type(options_of(["a", "b"]).chosen("a"), str)
assert_type(options_of([1, 2]).chosen("1"), int)
assert_type(options_of(Team).chosen("billing"), Team)
