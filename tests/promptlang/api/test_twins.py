"""The same program by both doors: the same requests with the same random numbers, and so the same answers and usage."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from textwrap import dedent
from typing import Annotated, Any, Literal

import pytest

import promptlang as pl

COUNTED = ("requested_tokens", "computed_tokens", "generated_tokens", "forced_tokens", "option_tokens", "calls")
Digit = Annotated[int, pl.Range(0, 9)]


@dataclass(frozen=True)
class Ran:
    """What a run gave and took."""

    result: Any
    messages: tuple[Any, ...]
    counts: dict[str, int | float]


def by_file(text: str, **arguments: Any) -> Ran:
    with pl.Engine() as engine:
        program = pl.compile(dedent(text))
        return ran(program.using(engine=engine).run(**arguments))


def by_function(function: Callable[..., Any], **arguments: Any) -> Ran:
    with pl.Engine() as engine:
        program = pl.program(function).using(engine=engine)
        outcome = program.run(**arguments)
        return ran(asyncio.run(outcome) if asyncio.iscoroutine(outcome) else outcome)


def ran(outcome: pl.Outcome[Any]) -> Ran:
    counts = outcome.usage.as_dict()
    return Ran(outcome.result, outcome.messages, {name: counts[name] for name in COUNTED})


TWINS: dict[str, tuple[str, Callable[..., Any]]] = {}


def twin(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Puts a program and its function beside each other."""

    def put(function: Callable[..., Any]) -> Callable[..., Any]:
        TWINS[function.__name__] = text, function
        return function

    return put


@twin("""
    program main(word: str):
        system: "You say ${word}."
        user: "What?"
        assistant: a = gen(max_tokens=6, temperature=1)
        user: "And now?"
        assistant:
            "Well, "
            b = gen(int in 0..9, temperature=2)
        role "tool": "12"
        return [a, b]
""")
def turns(p: pl.Prompt, word: str) -> Any:
    p.system(f"You say {word}.")
    p.user("What?")
    with p.assistant():
        a = p.gen(max_tokens=6, temperature=1)
    p.user("And now?")
    with p.assistant():
        p.text("Well, ")
        b = p.gen(Digit, temperature=2)
    p.role("tool", "12")
    return [a, b]


@twin("""
    program main(word: str):
        "The ${word}"
        fork 3 as drafts:
            " is"
            body = gen(max_tokens=5, temperature=0.9)
            rank = gen(int in 0..9, temperature=3)
            keep 2 by rank
        adopt drafts[0]
        end = gen(max_tokens=2, temperature=1)
        return [drafts[0].body, drafts[1].body, end]
""")
def best(p: pl.Prompt, word: str) -> Any:
    p.text("The ${word}", word=word)

    def draft(b: pl.Branch) -> str:
        b.text(" is")
        body = b.gen(max_tokens=5, temperature=0.9)
        b.keep(2, by=b.gen(Digit, temperature=3))
        return body

    drafts = p.fork(3, draft, name="drafts")
    p.adopt(drafts[0])
    end = p.gen(max_tokens=2, temperature=1)
    return [drafts[0].value, drafts[1].value, end]


@twin("""
    program main(word: str):
        "The ${word}"
        fork w in ["fox", "dog", "hill"] as each:
            " ${w}"
            x = gen(int in 0..9, temperature=3)
            keep where x > 2
        fork as sides:
            arm pro:
                " yes"
                y = gen(max_tokens=2, temperature=1)
            arm con:
                " no"
                y = gen(max_tokens=3, temperature=1)
        return [[e.index for e in each], sides.pro.y, sides.con.y]
""")
def items_and_arms(p: pl.Prompt, word: str) -> Any:
    p.text(f"The {word}")

    def body(b: pl.Branch, w: str) -> None:
        b.text(f" {w}")
        b.keep(where=b.gen(Digit, temperature=3) > 2)

    each = p.fork(["fox", "dog", "hill"], body, name="each")

    def pro(b: pl.Branch) -> str:
        b.text(" yes")
        return b.gen(max_tokens=2, temperature=1)

    def con(b: pl.Branch) -> str:
        b.text(" no")
        return b.gen(max_tokens=3, temperature=1)

    sides = p.fork({"pro": pro, "con": con}, name="sides")
    return [[e.index for e in each], sides["pro"].value, sides["con"].value]


@twin("""
    program main(word: str):
        "The ${word}"
        beam depth=3 width=2 branch=2 by x as paths:
            " and"
            x = gen(int in 0..9, temperature=3)
        adopt paths[0]
        return [[p.x, p.score] for p in paths]
""")
def search(p: pl.Prompt, word: str) -> Any:
    p.text(f"The {word}")

    def step(b: pl.Branch) -> int:
        b.text(" and")
        return b.gen(Digit, temperature=3)

    paths = p.beam(step, depth=3, width=2, branch=2, name="paths")
    p.adopt(paths[0])
    return [[path.value, path.ranked_by] for path in paths]


@twin("""
    program main(word: str):
        "The ${word}"
        x = gen(int in 0..9, temperature=3)
        require x == 3 else retry 64
        " then"
        y = gen(max_tokens=2, temperature=1)
        return [x, y]
""")
def again(p: pl.Prompt, word: str) -> Any:
    p.text(f"The {word}")
    for attempt in p.attempts(64):
        with attempt:
            x = p.gen(Digit, temperature=3)
            attempt.require(x == 3)
    p.text(" then")
    return [x, p.gen(max_tokens=2, temperature=1)]


@twin("""
    program main(word: str):
        "The ${word}"
        a = select("fox", "dog", "hill", temperature=1)
        b = select(options=[1, 22, 3], by="mean")
        c = score(" over")
        log c
        pin
        return [a, b.probs["22"], c]
""")
def choices(p: pl.Prompt, word: str) -> Any:
    p.text(f"The {word}")
    a = p.select(["fox", "dog", "hill"], temperature=1)
    b = p.select([1, 22, 3], by="mean", probs=True)
    c = p.score(" over")
    p.log(c)
    p.pin()
    return [a, b.probs[22], c]


@twin("""
    program main(word: str):
        "The ${word}"
        first = ask(word)
        x = gen(max_tokens=2, temperature=1)
        second = ask("again")
        return [x, first, second]

    program ask(word: str):
        "Ask ${word}:"
        a = gen(max_tokens=3, temperature=1)
        return a
""")
def calls(p: pl.Prompt, word: str) -> Any:
    @pl.program
    def ask(p: pl.Prompt, word: str) -> str:
        p.text(f"Ask {word}:")
        return p.gen(max_tokens=3, temperature=1)

    p.text(f"The {word}")
    first = p.call(ask, word)
    x = p.gen(max_tokens=2, temperature=1)
    second = p.call(ask, "again")
    return [x, first.result(), second.result()]


@twin("""
    program main(word: str):
        "The ${word}"
        fork 2 as outer:
            " a"
            fork 2 as inner:
                " b"
                x = gen(max_tokens=2, temperature=1)
            adopt inner[1]
            y = gen("yes" | "no", temperature=1)
        return [[o.inner[0].x, o.x, o.y] for o in outer]
""")
async def nested(p: pl.AsyncPrompt, word: str) -> Any:
    p.text(f"The {word}")

    async def innermost(b: pl.AsyncBranch) -> str:
        b.text(" b")
        return await b.gen(max_tokens=2, temperature=1)

    async def outer(b: pl.AsyncBranch) -> Any:
        b.text(" a")
        inner = await b.fork(2, innermost, name="inner")
        b.adopt(inner[1])
        y = await b.gen(Literal["yes", "no"], temperature=1)
        return [inner[0].value, inner[1].value, y]

    return [branch.value for branch in await p.fork(2, outer, name="outer")]


@pytest.mark.parametrize("name", TWINS)
def test_both_doors_say_and_take_the_same(name: str) -> None:
    text, function = TWINS[name]
    assert by_function(function, word="quick") == by_file(text, word="quick")


def test_a_row_draws_what_the_command_line_draws_for_it() -> None:
    text, function = TWINS["best"]
    rows = [{"word": word} for word in ("fox", "dog", "hill", "fox")]
    by_text = list(pl.compile(dedent(text)).batch(rows))
    assert list(pl.program(function).batch(rows)) == by_text
    assert by_text[0] != by_text[3]


def test_the_seed_is_the_same_by_both_doors() -> None:
    text, function = TWINS["best"]
    program, twin_of_it = pl.compile(dedent(text)), pl.program(function)
    found = {seed: program.using(seed=seed)(word="quick") for seed in (1, 2)}
    assert found[1] != found[2]
    assert {seed: twin_of_it.using(seed=seed)(word="quick") for seed in (1, 2)} == found
