"""What a type checker infers of answers and programs: mypy and pyright hold each line, with no flag; and it runs."""

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NewType, TypedDict, assert_type

import annotated_types
import pydantic
from typing_extensions import TypeAliasType

import promptlang as pl
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


class Desk:
    """Programs in a class."""

    def __init__(self, tone: str) -> None:
        self.tone = tone

    @pl.program
    def reply(self, p: pl.Prompt, ticket: str, words: int = 8) -> Draft:
        p.user(f"{self.tone}: {ticket}")
        return p.gen(Draft, max_tokens=words)

    @pl.program
    async def stars(self, p: pl.AsyncPrompt, ticket: str) -> int:
        p.user(ticket)
        return await p.gen(Stars)

    @pl.program
    @classmethod
    def calm(cls, p: pl.Prompt, ticket: str) -> str:
        p.user(f"{cls.__name__}: {ticket}")
        return p.gen()

    @pl.program
    @staticmethod
    def team(p: pl.Prompt, ticket: str) -> Team:
        p.user(ticket)
        return p.select(Team)


def runs(desk: Desk) -> None:
    """Never called: programs run where they are tested."""
    assert_type(desk.reply("late", words=4), Draft)
    assert_type(desk.reply.using(seed=1).run(ticket="late").result, Draft)
    assert_type(desk.calm("late"), str)
    assert_type(Desk.calm(ticket="late"), str)
    assert_type(Desk.team.run("late").result, Team)
    desk.reply(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    desk.reply(ticket="late", word=4)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]

    rows = [{"ticket": "late"}]
    for draft in desk.reply.batch(rows, ordered=True):
        assert_type(draft, Draft)
    for known in desk.reply.batch(rows, on_error="return"):
        assert_type(known, Draft | Exception)
    for numbered in desk.reply.batch(rows, ordered=False):
        assert_type(numbered, tuple[int, Draft])
    desk.reply.batch(rows).close()

    with desk.reply.stream("late") as run:
        assert_type(run.result, Draft)


async def awaits(desk: Desk) -> None:
    """Never called."""
    rows = [{"ticket": "late"}]
    assert_type(await desk.stars("late"), int)
    assert_type((await desk.stars.run(ticket="late")).result, int)
    assert_type(await desk.reply.acall("late"), Draft)
    async for draft in desk.reply.abatch(rows):
        assert_type(draft, Draft)
    async for number, known in desk.reply.abatch(rows, ordered=False, on_error="return"):
        assert_type(number, int)
        assert_type(known, Draft | Exception)
    async for stars in desk.stars.batch(rows, on_error="return"):
        assert_type(stars, int | Exception)
    await desk.stars.batch(rows).aclose()
    async with desk.stars.stream("late") as run:
        assert_type(await run.result(), int)


@pl.program
def calls(p: pl.Prompt, desk: Desk) -> Draft:
    """What a program infers of those that it calls."""
    assert_type(p.call(desk.reply, "late").result(), Draft)
    assert_type(p.call(Desk.team, ticket="late").result(), Team)
    assert_type(p.tool(len, "late"), int)
    return desk.reply("late")
