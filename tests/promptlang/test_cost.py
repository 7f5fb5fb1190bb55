"""What a rehearsal predicts, against what a run reports, on the tiny random model."""

import json
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tiny_engine import tiny_engine, tiny_tokenizer

import promptlang.cli.cost as cost
from promptlang.checker import check
from promptlang.cli.app import execute
from promptlang.conversion import bind_arguments
from promptlang.cost import CostError, Estimate, Rehearsal
from promptlang.graph import Graph
from promptlang.interpreter import Interpreter
from promptlang.loader import load
from promptlang.lower import lower
from promptlang.passes import optimise
from promptlang.runtime.usage import Usage

PROMPT_FIGURES = ("requested_tokens", "optimal_tokens", "computed_tokens", "forwards", "calls")


def graphs_of(folder: Path, text: str) -> dict[str, Graph]:
    file = folder / "program.pl"
    file.write_text(dedent(text).strip() + "\n")
    checked = check(load(file))
    assert checked.ok, checked.diagnostics
    return optimise(lower(checked)).graphs


def estimated(graphs: dict[str, Graph], rows: int = 1, **given: Any) -> Estimate:
    return Rehearsal(graphs, "main", given, tiny_tokenizer(), 32).estimate(rows)


def reported(graphs: dict[str, Graph], rows: list[dict[str, Any]]) -> Usage:
    engine = tiny_engine(1 << 15)
    interpreter = Interpreter(engine, graphs)
    usages = [Usage() for _ in rows]
    tasks = [
        interpreter.start("main", bind_arguments(graphs["main"], row), number, usage=usage)
        for number, (row, usage) in enumerate(zip(rows, usages, strict=True))
    ]
    for task, usage in zip(tasks, usages, strict=True):
        interpreter.wait(task)
        engine.usage.add_tokens(usage)
    return engine.usage


FIXED = """
    program main(word: str):
        system: "You answer in one word. The quick brown fox jumps over the lazy dog."
        user: "Which team owns ${word}, and how urgent is it?"
        assistant: team = select("fox", "dog", "hill")
        fork 3 as drafts:
            user: "Rate the ${team} team from 1 to 9."
            assistant: score = gen(int in 1..9, temperature=0.9)
            keep 1 by score
        adopt drafts[0]
        user: "Is that so?"
        assistant: sure = gen(bool)
        return [team, score, sure]
    """


@pytest.mark.parametrize("rows", [1, 5])
def test_answers_of_fixed_length_are_predicted_within_a_tenth(tmp_path: Path, rows: int) -> None:
    graphs = graphs_of(tmp_path, FIXED)
    usage = reported(graphs, [{"word": "fox"}] * rows)
    estimate = estimated(graphs, rows, word="fox")
    for name in PROMPT_FIGURES:
        actual = getattr(usage, name)
        assert estimate.figures[name].low >= 0.9 * actual, name
        assert estimate.figures[name].high <= 1.1 * actual, name
    share = usage.cached_tokens / usage.requested_tokens
    assert estimate.cached_share.low - 0.1 <= share <= estimate.cached_share.high + 0.1


def test_answers_of_free_length_lie_in_the_range(tmp_path: Path) -> None:
    graphs = graphs_of(
        tmp_path,
        """
        program main():
            "The quick brown fox."
            fork 3 as b:
                "Go on:"
                x = gen(max_tokens=20, temperature=1)
                " And then:"
                y = gen(max_tokens=10)
            return [one.y for one in b]
        """,
    )
    usage, estimate = reported(graphs, [{}]), estimated(graphs)
    assert estimate.figures["generated_tokens"].low < estimate.figures["generated_tokens"].high
    for name in ("requested_tokens", "generated_tokens", "forwards", "calls"):
        assert estimate.figures[name].low <= getattr(usage, name) <= estimate.figures[name].high, name


@pytest.mark.slow
def test_a_beam_is_predicted_within_a_tenth(tmp_path: Path) -> None:
    graphs = graphs_of(
        tmp_path,
        """
        program main(word: str):
            user: "Which of the digits is like ${word}?"
            beam depth=3 width=2 branch=3 by mark as paths:
                user: "Which one?"
                assistant: mark = gen(int in 1..9, temperature=1)
            adopt paths[0]
            user: "And which animal?"
            assistant: animal = select("fox", "dog")
            return [mark, animal]
        """,
    )
    estimate, usage = estimated(graphs, word="fox"), reported(graphs, [{"word": "fox"}])
    for name in PROMPT_FIGURES:
        found = getattr(usage, name)
        assert 0.9 * found <= estimate.figures[name].low <= estimate.figures[name].high <= 1.1 * found, name


def test_retries_lie_in_the_range_from_none_to_all(tmp_path: Path) -> None:
    graphs = graphs_of(
        tmp_path,
        """
        program main(word: str):
            "A digit for ${word}:"
            x = gen(int in 1..9, temperature=1)
            require x > 9 else retry 3
            return x
        """,
    )
    calls = estimated(graphs, word="fox").figures["calls"]
    assert (calls.low, calls.high) == (1, 4)


def test_many_rows_cost_what_the_first_ones_show(tmp_path: Path) -> None:
    graphs = graphs_of(
        tmp_path,
        """
        program main(word: str):
            "The quick brown fox is a ${word}"
            x = gen(bool)
            return x
        """,
    )
    few, many = estimated(graphs, 64), estimated(graphs, 640)
    assert many.figures["calls"].high == 640
    assert many.figures["requested_tokens"].high == pytest.approx(10 * few.figures["requested_tokens"].high, rel=0.1)


def test_what_is_not_given_is_stood_in_for_and_said(tmp_path: Path) -> None:
    graphs = graphs_of(
        tmp_path,
        r"""
        record Dog:
            name: str
            age: int in 1..9

        program main(text: str, dog: Dog, words: list[str, 2..4], code: /[A-Z]{3}-\d/, kind: "a" | "b", n: int = 3):
            "${text} ${dog.name} ${dog.age} ${words} ${code} ${kind} ${n}"
            x = gen(bool)
            return x
        """,
    )
    estimate = estimated(graphs)
    assert set(estimate.assumed) == {"text", "dog", "words", "code", "kind"}
    assert estimate.figures["requested_tokens"].low > estimate.assumed["text"]


def test_a_program_that_always_fails_has_no_cost(tmp_path: Path) -> None:
    graphs = graphs_of(tmp_path, "program main():\n    return 1 / len([])")
    with pytest.raises(CostError, match="division by zero"):
        estimated(graphs)


@pytest.fixture
def tiny_is_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cost, "_tokenizer", tiny_tokenizer)


@pytest.mark.usefixtures("tiny_is_embedded")
def test_the_command_gives_a_table_and_json(program: Callable[[str], str], capsys: pytest.CaptureFixture[str]) -> None:
    file = program(dedent(FIXED).strip() + "\n")
    assert execute(["check", file, "--cost", "--rows", "3"]) == 0
    table = capsys.readouterr().out
    assert "main, 3 rows" in table
    assert "assumed: word" in table
    assert execute(["check", file, "--cost", "--rows", "3", "--arg", "word=fox", "--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)[file]["main"]
    assert data["rows"] == 3
    assert data["assumed"] == {}
    assert data["figures"]["calls"] == {"low": 15, "high": 15}


@pytest.mark.usefixtures("tiny_is_embedded")
@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("program main():\n    return y\n", [], "PL1"),
        ("program main(n: int):\n    return n\n", ["--arg", "n=x"], "'n' does not fit"),
        ("program main():\n    return 1 / len([])\n", [], "division by zero"),
        ("program main():\n    return 1\n", ["--rows", "none"], "give 1 or more"),
    ],
)
def test_what_has_no_cost_is_said(
    text: str, arguments: list[str], message: str, program: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["check", program(text), "--cost", *arguments]) == 2
    captured = capsys.readouterr()
    assert message in captured.out + captured.err
