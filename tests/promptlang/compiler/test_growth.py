"""Lowering and passes cost twice as much for twice as large a program: in calls of functions, for those are the same
on any machine."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from promptlang.checker.check import check
from promptlang.compiler.graph import walk
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.optimise import optimise
from promptlang.diagnostics.source import Source
from promptlang.syntax.loader import load_source

ASKED = "\nprogram f(w: str):\n    x = gen(max_tokens=3)\n    return x\n"


def statements(count: int) -> str:
    lines = [f'x{number} = w + "{number}"' if number % 3 else '" text ${w}"' for number in range(count)]
    return program(lines, "w")


def forks(count: int) -> str:
    lines = [f"fork 2 as b{number}:\n        x = gen(max_tokens=3)" for number in range(count)]
    return program(lines, ", ".join(f"b{number}[0].x" for number in range(count)))


def dead_calls(count: int) -> str:
    return program([f"x{number} = f(w)" for number in range(count)], "w") + ASKED


def dead_chain(count: int) -> str:
    return program(["x0 = f(w)", *(f"x{number + 1} = f(x{number})" for number in range(count))], "w") + ASKED


def live_calls(count: int) -> str:
    lines = [f"x{number} = f(w)\n    y{number} = gen(max_tokens=1)" for number in range(count)]
    return program(lines, ", ".join(f"x{number}" for number in range(count))) + ASKED


def chained_programs(count: int) -> str:
    called = [f"    y = p{number + 1}(x)\n    return y\n\n" for number in range(count)] + ["    return x\n"]
    heads = (f"program p{number}(w: str) -> str:\n    x = gen(max_tokens=2)\n" for number in range(count + 1))
    return "".join(head + rest for head, rest in zip(heads, called, strict=True))


def program(lines: list[str], result: str) -> str:
    return "program main(w: str):\n" + "".join(f"    {line}\n" for line in lines) + f"    return [{result}]\n"


def requires(count: int) -> str:
    lines = ["x = gen(max_tokens=3, temperature=1)"]
    return program([*lines, *(f'require x != "{number}" else retry 1' for number in range(count))], "x")


def calls(text: str) -> int:
    """Calls of Python functions that lowering and passes take."""
    checked = check(load_source(Source(text, "generated.pl")))
    assert checked.ok, checked.diagnostics
    called = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal called
        called += event == "call"

    sys.setprofile(count)
    try:
        optimise(lower(checked))
    finally:
        sys.setprofile(None)
    return called


@pytest.mark.slow
@pytest.mark.parametrize("written", [statements, forks, dead_calls, dead_chain, live_calls, chained_programs])
def test_twice_the_program_costs_twice_as_much(written: Callable[[int], str]) -> None:
    assert calls(written(200)) <= 2.3 * calls(written(100))


@pytest.mark.slow
def test_long_chains_of_programs_and_of_requirements_are_no_depth() -> None:
    for text in (chained_programs(600), requires(90)):
        checked = check(load_source(Source(text, "generated.pl")))
        graphs = optimise(lower(checked)).graphs
        assert sum(1 for graph in graphs.values() for _ in walk(graph.body)) > 90
