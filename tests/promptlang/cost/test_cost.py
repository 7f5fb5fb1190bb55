"""What a rehearsal predicts, against what a run reports, on the tiny random model."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from places import ROOT
from tiny_engine import tiny_engine, tiny_tokenizer

import promptlang.cli.cost as cost
from promptlang.checker.check import check
from promptlang.cli.app import execute
from promptlang.compiler.graph import Graph
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.optimise import optimise
from promptlang.cost.estimate import CostError, Estimate, Rehearsal
from promptlang.interpreter.host_functions import ToolFunction
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.run import RunError
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.usage import Usage
from promptlang.syntax.loader import load
from promptlang.values.conversion import bind_arguments


def graphs_of(folder: Path, text: str) -> dict[str, Graph]:
    file = folder / "program.pl"
    file.write_text(dedent(text).strip() + "\n")
    checked = check(load(file))
    assert checked.ok, checked.diagnostics
    return optimise(lower(checked)).graphs


def estimated(graphs: dict[str, Graph], rows: int = 1, **given: Any) -> Estimate:
    return Rehearsal(graphs, "main", given, tiny_tokenizer(), 32).estimate(rows)


def reported(
    graphs: dict[str, Graph], name: str, rows: list[dict[str, Any]], tools: Mapping[str, ToolFunction] | None = None
) -> Usage:
    """The numbers of rows that run together; one that fails counts up to there."""
    engine = tiny_engine(1 << 16)
    interpreter = Interpreter(LocalBackend(engine), graphs, tools=tools or {})
    usages = [Usage() for _ in rows]
    tasks = [
        interpreter.start(name, bind_arguments(graphs[name], row), number, usage=usage)
        for number, (row, usage) in enumerate(zip(rows, usages, strict=True))
    ]
    for task, usage in zip(tasks, usages, strict=True):
        with suppress(RunError):
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


CALLS = """
    fragment say(word: str):
        user: "What of the ${word}?"
        assistant: a = gen(bool)
        log a

    program main(word: str):
        for one in ["fox", "dog", word]:
            use say(one)
            said = ask(one)
            log said
        n = 0
        while n < 2:
            n = n + 1
            user: "Once more, from 1 to 9."
            assistant: x = gen(int in 1..9)
        return n

    program ask(word: str) -> bool:
        "The quick brown ${word} jumps over the lazy dog. True?"
        a = gen(bool)
        return a
    """

RULES = """
    program main(word: str):
        "The quick brown fox jumps over the lazy dog."
        fork rule in ["sum", "mean", "prior", "greedy"] as b:
            "Say ${word}: "
            x = select("fox", "foxes", "the lazy dog", "hill", by=rule)
        y = select(options=["quick", "brown"], temperature=1)
        return [[one.x for one in b], y]
    """

SHAPES = """
    record Dog:
        kind: "dog"
        age: int in 1..9

    program main(word: str):
        "The quick brown fox jumps over the lazy ${word}"
        a = gen(Dog, max_tokens=60)
        " and the fo"
        b = gen("fox" | "form")
        "It is "
        c = gen(int in 1..9)
        return [a, b, c]
    """


BEAM = """
    program main(word: str):
        user: "Which of the digits is like ${word}?"
        beam depth=3 width=2 branch=3 by mark as paths:
            user: "Which one?"
            assistant: mark = gen(int in 1..9, temperature=1)
        adopt paths[0]
        user: "And which animal?"
        assistant: animal = select("fox", "dog")
        return [mark, animal]
    """

FIXED_LENGTHS = {"fork": FIXED, "calls": CALLS, "select": RULES, "shapes": SHAPES, "beam": BEAM}


@pytest.mark.parametrize("rows", [1, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("text", FIXED_LENGTHS.values(), ids=FIXED_LENGTHS)
def test_answers_of_fixed_length_are_predicted_within_a_tenth(tmp_path: Path, text: str, rows: int) -> None:
    graphs = graphs_of(tmp_path, text)
    usage = reported(graphs, "main", [{"word": "fox"}] * rows)
    estimate = estimated(graphs, rows, word="fox")
    for name in ("requested_tokens", "optimal_tokens", "computed_tokens", "cached_tokens", "forwards", "calls"):
        between = estimate.figures[name]
        assert 0.9 * between.low <= getattr(usage, name) <= 1.1 * between.high, name
    for name in ("requested_tokens", "cached_tokens", "calls"):
        between = estimate.figures[name]
        assert (between.low + between.high) / 2 == pytest.approx(getattr(usage, name), rel=0.1), name
    share = usage.cached_tokens / usage.requested_tokens
    assert estimate.cached_share.low - 0.01 <= share <= estimate.cached_share.high + 0.01


LONG = {"beam", "search", "tree_of_thought"}
"""Files whose rehearsals take more than a second."""

WAYS = {"unions"}
"""Files whose programs go where a drawn record says: rehearsals go some of these ways, a run may go another."""

PROGRAMS = [
    pytest.param(file, name, id=f"{file.stem}-{name}", marks=pytest.mark.slow if file.stem in LONG else ())
    for folder in ("examples", "tests/programs/good")
    for file in sorted((ROOT / folder).glob("*.pl"))
    if file.stem not in WAYS
    for name in check(load(file)).main
]

RETOKENISED = 0.01
"""What the model wrote is tokenised anew where it is an argument; the tiny model writes what nobody would."""

SHARE = 0.02
"""Rehearsals have all answers short or all long; in a run the rows differ, and the share may lie a little outside."""


@pytest.mark.parametrize("rows", [1, pytest.param(20, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("file", "name"), PROGRAMS)
def test_what_a_run_reports_lies_in_the_range(file: Path, name: str, rows: int) -> None:
    graphs = optimise(lower(check(load(file)))).graphs
    rehearsal = Rehearsal(graphs, name, {}, tiny_tokenizer(), 32)
    estimate = rehearsal.estimate(rows)
    usage = reported(graphs, name, [rehearsal.arguments(row) for row in range(rows)], rehearsal.tools())
    for figure, between in estimate.figures.items():
        slack = RETOKENISED * getattr(usage, figure)
        assert between.low - slack <= getattr(usage, figure) <= between.high + slack, figure
    share = usage.cached_tokens / max(1, usage.requested_tokens)
    assert estimate.cached_share.low - SHARE <= share <= estimate.cached_share.high + SHARE


def test_an_option_that_is_given_up_early_is_in_the_range(tmp_path: Path) -> None:
    """Whether an option of several tokens is computed depends on the model: one pass more, or less."""
    graphs = graphs_of(
        tmp_path,
        """
        program main():
            "The quick brown fox."
            x = select("the", "a lazy dog", "brown and brown")
            return x
        """,
    )
    forwards = estimated(graphs).figures["forwards"]
    assert (forwards.low, forwards.high) == (1, 2)


def test_a_row_that_fails_costs_what_it_took(tmp_path: Path) -> None:
    graphs = graphs_of(
        tmp_path,
        """
        program main():
            "The quick brown fox."
            x = select("the", "the lazy dog")
            " and"
            y = gen(max_tokens=10 // (len(x) - 3))
            return y
        """,
    )
    calls = estimated(graphs).figures["calls"]
    assert (calls.low, calls.high) == (1, 2)


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
    usage, estimate = reported(graphs, "main", [{}]), estimated(graphs)
    assert estimate.figures["generated_tokens"].low < estimate.figures["generated_tokens"].high
    for name in ("requested_tokens", "generated_tokens", "forwards", "calls"):
        assert estimate.figures[name].low <= getattr(usage, name) <= estimate.figures[name].high, name


@pytest.mark.parametrize(
    ("shape", "longest"), [("list[int in 0..9, 2..20]", 39), ("/[a-z]{5,60}/", 60), ('list["yes" | "no", 1..9]', 9)]
)
def test_the_longest_answer_is_the_longest_that_is_legal(tmp_path: Path, shape: str, longest: int) -> None:
    graphs = graphs_of(
        tmp_path,
        f"""
        program main():
            "The quick brown fox."
            x = gen({shape}, max_tokens=200)
            return x
        """,
    )
    usage, figures = reported(graphs, "main", [{}]), estimated(graphs).figures
    generated, forced = figures["generated_tokens"], figures["forced_tokens"]
    assert generated.high + forced.high >= longest
    assert generated.low <= usage.generated_tokens <= generated.high


def test_stand_ins_of_all_types_differ_between_rows(tmp_path: Path) -> None:
    graphs = graphs_of(
        tmp_path,
        r"""
        record Item:
            name: str
            under: list[Item]

        program main(
            n: int, f: float in -1.0..1.0, code: /[A-Z]{3}-\d{4}/, kind: "a" | "b" | "c", words: dict[str, int],
            one: Item, data: json, few: list[int in 0..9, 2..4]
        ):
            "${n} ${f} ${code} ${kind} ${words} ${one} ${data} ${few}"
            x = gen(bool)
            return x
        """,
    )
    rehearsal = Rehearsal(graphs, "main", {}, tiny_tokenizer(), 32)
    rows = [rehearsal.arguments(row) for row in range(8)]
    assert rows == [rehearsal.arguments(row) for row in range(8)]
    for name in rows[0]:
        assert len({repr(row[name]) for row in rows}) > 2, name


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


@pytest.mark.slow
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
    monkeypatch.setattr(cost, "counting_tokenizer", tiny_tokenizer)


@pytest.mark.slow
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
def test_an_argument_goes_to_the_programs_that_have_it(
    program: Callable[[str], str], capsys: pytest.CaptureFixture[str]
) -> None:
    file = program(
        "program one(word: str):\n    return word\n\nprogram two(n: int, word: str):\n    return [n, word]\n"
    )
    assert execute(["check", file, "--cost", "--arg", "n=3", "--arg", "word=fox", "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)[file]
    assert [found[name]["assumed"] for name in ("one", "two")] == [{}, {}]


@pytest.mark.usefixtures("tiny_is_embedded")
@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        (
            "program one(n: int):\n    return n\n\nprogram two():\n    return 1\n",
            ["--arg", "word=fox"],
            "no program has an argument 'word'",
        ),
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
