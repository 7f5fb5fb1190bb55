"""`keep first N`: who comes first is told by tokens, and so the same whatever else the model does."""

from textwrap import dedent
from typing import Any

import pytest
from tiny_command import load_tiny
from tiny_engine import kv_bytes

import promptlang.session.opening as opening
from promptlang.interpreter.run import Outcome, RunError
from promptlang.session.program_file import ProgramFile
from promptlang.session.session import Session
from promptlang.session.settings import Settings

RACE = """
program main(word: str):
    "The ${word}"
    fork 5 as all:
        " and"
        x = gen(max_tokens=30, temperature=1.5, stop=["a", "e"])
        keep first 2
        y = gen(max_tokens=3, temperature=1)
    return [[one.index, one.x, one.y] for one in all]
"""

NESTED = """
program main(word: str):
    "The ${word}"
    fork 3 as outer:
        " or"
        fork 2 as inner:
            " so"
            x = gen(max_tokens=20, temperature=1.5, stop=["a", "e"])
            keep first 1
        adopt inner[0]
        for n in [1, 2]:
            y = gen(max_tokens=12, temperature=1.5, stop="o")
            keep first 3 - n
    return [[one.index, one.x, one.y] for one in outer]
"""

TEXTS = {"race": RACE, "nested": NESTED}
WORDS = ["fox", "dog", "hill", "quick brown fox", "lazy dog", "moon", "star", "sun"]


def found(text: str, at_once: int, passes: bool = True, **settings: Any) -> list[Any]:
    """What each row gives."""
    file = ProgramFile.of_text(dedent(text))
    program = file.program(None) if passes else file.program(None, ())
    with Session(Settings(**settings)) as session:
        rows = session.runner(program).rows(enumerate({"word": word} for word in WORDS), at_once=at_once)
        ends = [ended.end for ended in rows]
    assert all(isinstance(end, Outcome) for end in ends), ends
    return [end.result for end in ends if isinstance(end, Outcome)]


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "load", lambda name, **_: load_tiny(name))


@pytest.mark.parametrize("name", TEXTS)
def test_the_first_are_the_same_in_any_company(name: str) -> None:
    alone = found(TEXTS[name], at_once=1)
    assert len({str([one[0] for one in row]) for row in alone}) > 1, "all rows keep the same"
    assert found(TEXTS[name], at_once=8) == alone
    assert found(TEXTS[name], at_once=3, passes=False) == alone
    assert found(TEXTS[name], at_once=8, kv_bytes=kv_bytes(384)) == alone
    assert found(TEXTS[name], at_once=8, shares=False) == alone


def test_the_first_wrote_the_fewest_tokens_and_of_equals_the_lowest_index() -> None:
    text = """
    program main(word: str):
        "The ${word}"
        fork n in [9, 3, 6, 3, 3] as all:
            " and"
            x = gen(max_tokens=n, min_tokens=n)
            keep first 2
        return [one.index for one in all]
    """
    assert found(text, at_once=8) == [[1, 3]] * len(WORDS)


def test_who_waits_for_another_keep_comes_no_more_before_these_go_on() -> None:
    text = """
    program main(word: str):
        "The ${word}"
        fork n in [1, 2, 3] as all:
            x = gen(max_tokens=n, min_tokens=n)
            if n == 1:
                keep 1 by n
            keep first 1
        return [one.index for one in all]
    """
    assert found(text, at_once=4) == [[1]] * len(WORDS)


def test_copies_of_a_merged_branch_count_as_if_each_had_run() -> None:
    text = """
    program main(word: str):
        "The ${word}"
        fork n in [0, 1] as all:
            if n == 0:
                fork 4 as equal:
                    x = gen(max_tokens=3, min_tokens=3)
                y = equal[0].x
            else:
                y = gen(max_tokens=6, min_tokens=6)
            keep first 1
        return [[one.index, one.y] for one in all]
    """
    merged = found(text, at_once=8)
    assert [[one[0] for one in row] for row in merged] == [[1]] * len(WORDS), "12 tokens come after 6"
    assert found(text, at_once=8, passes=False) == merged


def test_losers_are_ended_before_their_end() -> None:
    text = """
    program main(word: str):
        "The ${word}"
        fork n in [2, 200] as all:
            x = gen(max_tokens=n, min_tokens=n)
            keep first 1
        return [one.index for one in all]
    """
    file = ProgramFile.of_text(dedent(text))
    with Session(Settings()) as session:
        outcome = session.runner(file.program(None)).run({"word": "fox"})
    assert outcome.usage.generated_tokens < 20


FAULT = """
program main(word: str):
    "The ${word}"
    fork n in [5, 3, 9] as all:
        if n == 3:
            "${filler}"
        x = gen(max_tokens=n, min_tokens=n)
        y = 1 // (n - 5)
        keep first 1
    return [one.index for one in all]
""".replace("${filler}", "and so on and on " * 60)


def test_whether_a_run_fails_is_the_same_in_any_company() -> None:
    """The branch that divides by zero is too late: another arrived with fewer tokens, however long its prompt took."""
    assert found(FAULT, at_once=1) == [[1]] * len(WORDS)
    assert found(FAULT, at_once=8) == [[1]] * len(WORDS)
    assert found(FAULT, at_once=8, shares=False) == [[1]] * len(WORDS)


def test_a_fault_before_anybody_arrives_fails_the_run_whatever_comes_later() -> None:
    file = ProgramFile.of_text(dedent(FAULT.replace("[5, 3, 9]", "[5, 7, 9]")))
    with Session(Settings()) as session, pytest.raises(RunError, match="division by zero") as caught:
        session.runner(file.program(None)).run({"word": "fox"})
    assert caught.value.path == ("all[0]",)
