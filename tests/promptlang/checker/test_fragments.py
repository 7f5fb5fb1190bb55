"""Fragments inside fragments: a program is measured with all of them in place, and none is put there for that."""

import sys
from types import FrameType
from typing import Any

import pytest

from promptlang.checker.check import check
from promptlang.checker.tables import Checked
from promptlang.diagnostics.source import Source
from promptlang.syntax.limits import MOST_NESTING, MOST_STATEMENTS
from promptlang.syntax.loader import load_source


def checked(text: str) -> Checked:
    return check(load_source(Source(text)))


def found(text: str) -> list[tuple[str, str]]:
    """The code of each diagnostic, and what it marks."""
    return [(diagnostic.code, diagnostic.span.text) for diagnostic in checked(text).diagnostics]


def chain(count: int, inner: str, last: str = '"x"') -> str:
    """Fragments that each use the next one, and a program that uses the first."""
    links = [f"fragment f{number}():\n    {inner.format(f'use f{number + 1}()')}\n" for number in range(count)]
    return "".join([*links, f"fragment f{count}():\n    {last}\n", "program p():\n    use f0()\n"])


TWICE = "{0}\n    {0}"


def test_fragments_that_use_the_next_twice_are_counted_in_place() -> None:
    assert found(chain(11, TWICE)) == []
    assert found(chain(60, TWICE)) == [("PL317", f"f{60 - MOST_STATEMENTS.bit_length() + 2}")]
    [diagnostic] = checked(chain(60, TWICE)).diagnostics
    assert str(MOST_STATEMENTS) in diagnostic.message


@pytest.mark.slow
def test_a_program_may_have_as_many_statements_as_the_limit_says() -> None:
    body = "    log 1\n" * (MOST_STATEMENTS - 2)
    text = f"fragment f():\n    log 1\nprogram p():\n    use f()\n{body}"
    assert found(text) == []
    assert found(text + "    log 1\n") == [("PL317", "p")]


def test_fragments_inside_one_another_nest() -> None:
    assert found(chain(MOST_NESTING - 2, "{0}")) == []
    assert found(chain(MOST_NESTING - 1, "{0}")) == [("PL010", "p")]
    assert found(chain(1_000, "{0}")) == [("PL010", f"f{1_000 - MOST_NESTING}")]


@pytest.mark.parametrize("around", ["if len(x) > 0:", "fork 2 as b:"])
def test_what_a_fragment_holds_nests_in_what_holds_the_fragment(around: str) -> None:
    lines = [f"{'    ' * level}{around.replace('b:', f'b{level}:')}\n" for level in range(1, 61)]
    deep = "".join(lines) + "    " * 61
    text = f'fragment f(x: str):\n{deep}"${{x}}"\nprogram p(x: str):\n'
    assert ("PL010", "p") not in found(text + "    use f(x)\n")
    assert ("PL010", "p") in found(text + deep + "use f(x)\n")


def requires(count: int) -> str:
    lines = "".join(f'    require x != "{number}" else retry 1\n' for number in range(count))
    return f"program p():\n    x = gen(max_tokens=3, temperature=1)\n{lines}    return x\n"


def test_requires_of_one_answer_nest() -> None:
    assert found(requires(MOST_NESTING - 1)) == []
    assert found(requires(MOST_NESTING)) == [("PL010", "p")]


def test_requires_of_several_answers_do_not() -> None:
    pairs = "".join(
        f'    x{number} = gen(max_tokens=3, temperature=1)\n    require x{number} != "a" else retry 1\n'
        for number in range(3 * MOST_NESTING)
    )
    assert found(f"program p():\n{pairs}") == []


def test_each_fragment_of_a_circle_is_shown_the_shortest_way_round() -> None:
    circle = "fragment a():\n    use b()\n    use a()\nfragment b():\n    use c()\nfragment c():\n    use a()\n"
    leads_in = "fragment d():\n    use a()\n    use e()\nfragment e():\n    pass\n"
    messages = [diagnostic.message.partition(": ")[2] for diagnostic in checked(circle + leads_in).diagnostics]
    assert messages == ["a -> a", "b -> c -> a -> b", "c -> a -> b -> c"]


def steps(text: str) -> int:
    """Calls of Python functions, and resumed generators, that checking takes once the text is parsed."""
    bundle = load_source(Source(text))
    taken = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal taken
        taken += event == "call"

    sys.setprofile(count)
    try:
        check(bundle)
    finally:
        sys.setprofile(None)
    return taken


@pytest.mark.parametrize(
    "written",
    [
        lambda count: chain(count, "{0}"),
        lambda count: chain(count, "{0}", f"use f{count}()"),
        lambda count: chain(count, "if true:\n        {0}\n    {0}") + "    x = gen()\n",
        lambda count: chain(count, TWICE) + "    x = gen()\n    require len(x) > 2 else retry 1\n",
    ],
    ids=["chain", "chain into a circle", "answer", "require"],
)
def test_twice_as_many_fragments_are_twice_the_work(written: Any) -> None:
    assert steps(written(200)) <= 2.2 * steps(written(100))
