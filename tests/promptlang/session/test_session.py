"""Sessions as a Python API or a server would use them, on the tiny random model."""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from tiny_command import load_tiny
from tiny_engine import kv_bytes

import promptlang.session.opening as opening
from promptlang.interpreter.host_functions import ToolError
from promptlang.interpreter.run import Outcome, RunError
from promptlang.runtime.models.loading import LoadedModel
from promptlang.runtime.models.model import ModelError
from promptlang.session.program import Program
from promptlang.session.program_file import ChoiceError, ProgramError, ProgramFile
from promptlang.session.rows import ROUNDS_AHEAD
from promptlang.session.session import Session
from promptlang.session.settings import OpeningError, Settings
from promptlang.values.conversion import ArgumentsError

SYSTEM = "You answer in one word, and never in two. " * 4
ASK = f"""
program ask(question: str, times: int = 1) -> str:
    system: "{SYSTEM}"
    user: "${{question}}"
    assistant: answer = gen(max_tokens=4)
    return "${{question}}:${{times}}"
"""
RATE = f"""
program rate(text: str) -> int:
    system: "{SYSTEM}"
    user: "Rate ${{text}}."
    assistant: score = gen(int in 1..9)
    return score
"""
COUNT = """
program count(n: int) -> int:
    "Count:"
    x = gen(max_tokens=n, min_tokens=n)
    return 60 // (n - 3)
"""
TALK = """
program main(q: str):
    "${q}"
    x = gen(max_tokens=6, temperature=1.0)
    return x
"""


@pytest.fixture(autouse=True)
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were loaded; each is the tiny one."""
    names: list[str] = []

    def load(name: str, **_: object) -> LoadedModel:
        names.append(name)
        return load_tiny(name)

    monkeypatch.setattr(opening, "load", load)
    return names


def small_session() -> Session:
    return Session(Settings(model="some/model", kv_bytes=kv_bytes(4096)))


def program(text: str, name: str | None = None) -> Program:
    return ProgramFile.of_text(text).program(name)


# Programs --------------------------------------------------------------------------------------------


def test_a_program_comes_from_text_and_says_what_it_takes() -> None:
    ask = program(ASK)
    assert ask.name == "ask"
    assert ask.signature == "it takes question: str, times: int = 1"
    assert ask.bind({"question": "Why?"}) == {"question": "Why?", "times": 1}
    assert ask.typed({"question": "7", "times": "7", "other": "7"}) == {"question": "7", "times": 7, "other": "7"}


def test_a_wrong_program_is_diagnostics() -> None:
    file = ProgramFile.of_text("program main():\n    return missing\n", "typed in")
    with pytest.raises(ProgramError, match="typed in:2:12") as caught:
        file.program()
    assert not file.is_ok
    assert [found.span.position.line for found in caught.value.diagnostics if found.is_error] == [2]


def test_a_file_that_could_be_better_runs_and_says_so() -> None:
    file = ProgramFile.of_text(
        'program main(q: str):\n    user: "${q}"\n    user: "' + "Always the same words. " * 20 + '"\n'
        "    assistant: a = gen()\n    return a\n"
    )
    assert file.is_ok
    assert [found.is_error for found in file.diagnostics] == [False]
    assert file.program().name == "main"


def test_a_program_that_is_not_there_is_told_with_those_that_are() -> None:
    file = ProgramFile.of_text(ASK + RATE)
    for name in ("other", "", None):
        with pytest.raises(ChoiceError) as caught:
            file.program(name)
        assert (caught.value.name, caught.value.names) == (name, ("ask", "rate"))
    assert file.program("rate").name == "rate"


def test_a_model_by_name_is_refused_before_one_is_loaded(loads: list[str]) -> None:
    ask = program(ASK)
    far = Program(ask.name, {ask.name: replace(ask.graph, on="judge")})
    with small_session() as session, pytest.raises(OpeningError, match="`judge`"):
        session.runner(far)
    assert loads == []


# One model, many programs ----------------------------------------------------------------------------


def test_the_model_is_loaded_once_when_it_is_first_needed(loads: list[str]) -> None:
    with small_session() as session:
        assert loads == []
        session.runner(program(ASK)).run({"question": "a"})
        session.runner(program(RATE)).run({"text": "a"})
    assert loads == ["some/model"]


def test_programs_of_a_session_share_what_they_begin_with() -> None:
    with small_session() as session:
        first = session.runner(program(ASK)).run({"question": "a"})
        again = session.runner(program(RATE)).run({"text": "b"})
    alone = small_session().runner(program(RATE)).run({"text": "b"})
    assert first.usage.computed_tokens == first.usage.requested_tokens
    assert again.usage.computed_tokens < alone.usage.computed_tokens // 3
    assert again.result == alone.result


def test_a_session_counts_all_its_runs_and_a_run_only_itself() -> None:
    with small_session() as session:
        usages = [session.runner(program(ASK)).run({"question": text}).usage for text in ("a", "b")]
        assert session.usage.requested_tokens == sum(usage.requested_tokens for usage in usages)
        assert session.usage.calls == 2


def test_runs_of_two_programs_may_be_under_way_at_once() -> None:
    with small_session() as session:
        ask, rate = session.runner(program(ASK)), session.runner(program(RATE))
        asked, rated = ask.start({"question": "a"}), rate.start({"text": "b"})
        assert rate.wait(rated).result in range(1, 10)
        assert ask.wait(asked).result == "a:1"
        session.open().check()


def test_the_seed_decides() -> None:
    text = 'program main():\n    "A"\n    x = gen(max_tokens=8, temperature=1.0)\n    return x\n'
    with small_session() as session:
        said = [session.runner(program(text), seed=seed).run({}).result for seed in (1, 1, 2)]
    assert said[0] == said[1] != said[2]


def test_tools_are_functions_by_name() -> None:
    text = "tool add(a: int, b: int) -> int\n\nprogram main(n: int) -> int:\n    x = add(n, 1)\n    return x\n"
    with small_session() as session:
        assert session.runner(program(text), tools={"add": lambda a, b: a + b}).run({"n": 2}).result == 3
        with pytest.raises(ToolError, match="add"):
            session.runner(program(text))


def test_what_can_not_be_opened_is_an_error_and_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    session = small_session()
    with monkeypatch.context() as patched:

        def fail(*_: object, **__: object) -> LoadedModel:
            raise ModelError("there is no model")

        patched.setattr(opening, "load", fail)
        with pytest.raises(OpeningError, match="there is no model"):
            session.open()
    assert session.runner(program(ASK)).run({"question": "a"}).result == "a:1"
    with pytest.raises(OpeningError, match="KV budget"):
        Session(Settings(kv_bytes=1)).open()


def test_a_closed_session_opens_nothing(loads: list[str]) -> None:
    with small_session() as session:
        pass
    with pytest.raises(OpeningError, match="closed"):
        session.runner(program(ASK))
    assert loads == []


# Rows ------------------------------------------------------------------------------------------------


def questions(read: list[int], count: int) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Rows for `ask`; notes which were read."""
    for number in range(count):
        read.append(number)
        yield number, {"question": f"q{number}" * (1 + 97 * number % 13)}


def test_rows_are_read_as_they_are_needed_and_come_out_in_order() -> None:
    read: list[int] = []
    with small_session() as session:
        ends = session.runner(program(ASK)).rows(questions(read, 40), at_once=2)
        assert read == []
        assert next(ends).row == 0
        few = len(read)
        assert [ended.row for ended in ends] == list(range(1, 40))
    assert few <= 2 * ROUNDS_AHEAD + 1
    assert len(read) == 40


def test_a_slow_row_does_not_make_the_others_pile_up_behind_it() -> None:
    read: list[int] = []

    def rows() -> Iterator[tuple[int, Mapping[str, Any]]]:
        for number in range(40):
            read.append(number)
            yield number, {"n": 40 if number == 0 else 1}

    with small_session() as session:
        ends = session.runner(program(COUNT)).rows(rows(), at_once=2)
        first = next(ends)
        assert isinstance(first.end, Outcome)
        assert len(read) <= 2 * ROUNDS_AHEAD + 2
        assert len(list(ends)) == 39


def test_rows_run_together() -> None:
    def passes(at_once: int) -> int:
        with small_session() as session:
            list(session.runner(program(ASK)).rows(questions([], 8), at_once))
            return session.usage.forwards

    assert passes(8) < passes(1) // 2


def test_a_row_that_fails_leaves_the_others_alone() -> None:
    rows: list[Mapping[str, Any]] = [{"n": 1}, {"n": 3}, {"m": 1}, {"n": "x"}, {"n": 5}]
    with small_session() as session:
        ends = list(session.runner(program(COUNT)).rows(enumerate(rows)))
        session.open().check()
    kinds = [type(ended.end) for ended in ends]
    assert kinds == [Outcome, RunError, ArgumentsError, ArgumentsError, Outcome]
    assert [ended.end.result for ended in ends if isinstance(ended.end, Outcome)] == [-30, 30]
    assert ends[1].usage.generated_tokens == 3
    assert ends[2].usage.calls == 0


def test_rows_are_what_they_are_alone() -> None:
    rows = [(number, {"q": f"row {number}"}) for number in range(6)]

    def said(some: list[tuple[int, dict[str, str]]], at_once: int) -> list[Any]:
        with small_session() as session:
            ends = session.runner(program(TALK)).rows(some, at_once)
            return [ended.end.result for ended in ends if isinstance(ended.end, Outcome)]

    assert said(rows, 32) == said(rows, 2) == [result for row in rows for result in said([row], 1)]


def test_rows_that_end_in_an_error_are_given_out_before_it() -> None:
    def rows() -> Iterator[tuple[int, Mapping[str, Any]]]:
        yield 0, {"question": "a"}
        yield 1, {"question": "b"}
        raise OSError("the disk is gone")

    given = []
    with small_session() as session, pytest.raises(OSError, match="the disk is gone"):
        given.extend(ended.row for ended in session.runner(program(ASK)).rows(rows()))
    assert given == [0, 1]


def test_whoever_stops_reading_ends_the_runs_under_way() -> None:
    read: list[int] = []
    with small_session() as session:
        runner = session.runner(program(ASK))
        ends = runner.rows(questions(read, 40), at_once=2)
        next(ends)
        begun = len(read)
        ends.close()  # type: ignore[attr-defined]
        assert runner.run({"question": "after"}).result == "after:1"
        session.open().check()
    assert len(read) == begun


def test_rows_may_come_from_other_runs() -> None:
    with small_session() as session:
        ask, rate = session.runner(program(ASK)), session.runner(program(RATE))
        asked = ask.rows(((number, {"question": f"q{number}"}) for number in range(6)), at_once=2)
        texts = ((ended.row, {"text": ended.end.result}) for ended in asked if isinstance(ended.end, Outcome))
        rated = list(rate.rows(texts, at_once=2))
        session.open().check()
    assert [ended.row for ended in rated] == list(range(6))
    assert all(isinstance(ended.end, Outcome) and ended.end.result in range(1, 10) for ended in rated)


def test_threads_share_a_session() -> None:
    def said(session: Session, seed: int) -> list[Any]:
        runner = session.runner(program(TALK), seed)
        rows = ((number, {"q": f"row {number}"}) for number in range(8))
        return [ended.end.result for ended in runner.rows(rows, at_once=3) if isinstance(ended.end, Outcome)]

    with small_session() as session:
        session.open()
        with ThreadPoolExecutor(3) as pool:
            together = [future.result(timeout=60) for future in [pool.submit(said, session, seed) for seed in range(3)]]
        session.open().check()
        assert session.usage.calls == 24
    assert together == [said(small_session(), seed) for seed in range(3)]
