"""Programs mean the same after passes as without them, and what the oracle says they mean."""

from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from meaning import Meaning, checked_text, differences, graphs_of, meaning_of, plain_meaning_of
from random_programs import random_program

from promptlang.compiler.graph import Graph
from promptlang.compiler.passes.optimise import PASSES, optimise

ALONE = tuple((name,) for name in PASSES)
WORD = "quick fox"


def compared(text: str, folder: Path, *choices: tuple[str, ...], **arguments: Any) -> Meaning:
    """Runs a program by the oracle, without passes and with some; gives what the last was."""
    graphs = graphs_of(dedent(text), folder)
    oracle, plain = plain_meaning_of(graphs, **arguments), meaning_of(graphs, (), **arguments)
    assert_oracle(plain, oracle)
    last = plain
    for names in choices:
        last = meaning_of(graphs, names, **arguments)
        if plain.faults and "dead" in names:
            dropping = [name for name in ("fold", "dead") if name in names]
            assert_live(last, optimise(graphs, dropping).graphs, **arguments)
        else:
            assert not differences(last, plain, oracle, drops="dead" in names), names
    return last


def assert_live(run: Meaning, graphs: dict[str, Graph], **arguments: Any) -> None:
    """A run whose dead code would have failed is what the rest of the program means."""
    oracle, plain = plain_meaning_of(graphs, **arguments), meaning_of(graphs, (), **arguments)
    assert_oracle(plain, oracle)
    assert not differences(run, plain, oracle)


def assert_oracle(plain: Meaning, oracle: Meaning) -> None:
    """A run without passes is what the oracle says; calls that a `keep` ends half-way may take less."""
    if plain.faults or oracle.faults:
        assert plain.faults
        assert plain.faults <= oracle.faults
        return
    assert repr((plain.result, plain.variables)) == repr((oracle.result, oracle.variables))
    assert plain.logs == oracle.logs
    assert plain.usage.calls <= oracle.usage.calls
    assert plain.usage.generated_tokens <= oracle.usage.generated_tokens


# Names -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        'fork tone in ["kind", "rude"] as b:\n    "Be ${tone}."\n    x = gen(max_tokens=2)',
        'fork tone, n in [["kind", 1], ["rude", 0]] as b:\n    x = f(tone)\n    y = tone if n > 0 else "no"',
        'fork tone in ["kind", "rude"] as b:\n    fork 2 as c:\n        x = gen(max_tokens=len(tone))\n    " ${c}"',
        'b = []\nfor tone in ["kind", "rude"]:\n    if tone == "rude":\n        " Hush"\n    b = b + [tone]',
        'b = []\nuse say("loud")\ntone = "new"\nb = b + [tone]',
        "b = []\nuse loud()\nx = gen(max_tokens=2)\nb = b + [tone]",
        'fork 2 as b:\n    b = [tone for tone in ["kind"]]\n    tone = "own"\nb = [tone, b[0]]',
    ],
)
def test_a_constant_never_stands_in_for_a_variable_of_its_name(tmp_path: Path, body: str) -> None:
    lines = body.replace("\n", "\n            ")
    text = f"""
        const tone = "calm"

        program main():
            "The fox."
            {lines}
            return [b]

        fragment say(tone: str):
            "Say it ${{tone}}."

        fragment loud():
            fork tone in ["kind", "rude"] as b:
                "Be ${{tone}}."
            " ${{b[0].text}} ${{b[1].text}}"

        program f(tone: str):
            "Be ${{tone}}."
            x = gen(max_tokens=2)
            return x
        """
    compared(text, tmp_path, ("fold",), tuple(PASSES))


@pytest.mark.parametrize(("one", "two"), [("1", "true"), ("0", "false"), ("1", "1.0"), ("0.0", "-0.0")])
def test_equal_values_that_are_written_apart_are_not_the_same(tmp_path: Path, one: str, two: str) -> None:
    text = f"""
        program main():
            fork as b:
                arm one:
                    "It is ${{{one}}}"
                    x = {one}
                arm two:
                    "It is ${{{two}}}"
                    x = {two}
            return [b.one.text, b.two.text, b.one.x, b.two.x]
        """
    compared(text, tmp_path, ("hoist",), ("merge",), tuple(PASSES))


# Guards ------------------------------------------------------------------------------------------------------

GUARDED = [
    'fork n in [1, 0] as b:\n    "N"\n    y = gen(max_tokens=2)\n    keep where n != 0\n    k = 10 // n\n    r = f(k)',
    'fork w in ["1", "9"] as b:\n    n = int(w)\n    y = gen(max_tokens=2)\n    keep where n < 6\n    r = small(n)',
    'fork n in [1, 2, 3] as b:\n    "N"\n    y = gen(max_tokens=3)\n    keep 1 by n\n    r = slow("a")',
    'fork n in [1, 2, 3] as b:\n    "N"\n    y = gen(max_tokens=3)\n    r = slow("a")\n    keep 1 by n',
    'fork n in [1, 2, 3] as b:\n    "N"\n    r = twice("a")\n    keep 1 by n',
    'n = 0\n"N"\ny = gen(max_tokens=2)\nrequire n != 0 else retry 0\nk = 10 // n\nb = f(k)',
    'n = 1\n"N"\ny = gen(max_tokens=2)\nrequire n == 0 else retry 0\nb = slow("a")',
    'a = gen(max_tokens=1, temperature=2)\nb = slow("a")\nrequire a == "*" else retry 2',
    "n = 0\ny = gen(max_tokens=2)\nk = 10 // n\nb = f(k)",
    'a = "old"\nfork 2 as c:\n    a = "new"\n    y = gen(max_tokens=2)\na = "mid"\nadopt c[0]\nb = slow(a)',
    'a = "old"\nfork 2 as c:\n    y = gen(max_tokens=2)\na = "mid"\nadopt c[0]\nb = slow(a)\n" ${a}"',
    'y = gen(max_tokens=2)\nfor w in ["a", "b"]:\n    if w == "b":\n        break\nb = slow("a")',
    'b = slow("a")\nc = gen(max_tokens=4)\nd = f(len(b))\n" ${d}"',
]
"""What stands before a call, and the call."""


@pytest.mark.parametrize("body", GUARDED)
def test_no_call_begins_that_a_guard_would_have_held_back(tmp_path: Path, body: str) -> None:
    lines = body.replace("\n", "\n            ")
    text = f"""
        program main():
            "The fox"
            {lines}
            return [b]

        program f(n: int):
            "F ${{n}}"
            x = gen(max_tokens=2)
            return x

        program small(n: int in 1..5):
            "F ${{n}}"
            x = gen(max_tokens=2)
            return x

        program slow(word: str):
            "The ${{word}}"
            x = gen(max_tokens=4)
            y = gen(max_tokens=4)
            return y

        program twice(word: str):
            "The ${{word}}"
            x = gen(max_tokens=6)
            y = slow("b")
            return y
        """
    compared(text, tmp_path, *ALONE, tuple(PASSES))


@pytest.mark.slow
def test_a_call_that_begins_early_is_bound_in_its_place(tmp_path: Path) -> None:
    text = """
        program main():
            fork 2 as b:
                "The fox"
                word = "hill"
                x = gen(max_tokens=5)
                y = ask(word)
                z = gen(max_tokens=5)
                a = ask("dog")
            " ${b[0]} ${b}"
            x = gen(max_tokens=5)
            y = ask("The ${x}")
            w = draw("dog")
            draw("hill")

        program ask(word: str):
            "The ${word}"
            x = gen(max_tokens=5)
            return x

        program draw(word: str):
            "The ${word}"
            x = gen(max_tokens=9, temperature=1)
            return x
        """
    graphs = graphs_of(dedent(text), tmp_path)
    last = compared(text, tmp_path, ("early",), tuple(PASSES))
    assert last.usage.forwards < meaning_of(graphs, ()).usage.forwards
    assert list(last.variables) == ["b", "x", "y", "w"]


# What is dead ------------------------------------------------------------------------------------------------


def test_arms_keep_their_numbers(tmp_path: Path) -> None:
    text = """
        program main():
            fork as s:
                arm a:
                    x = gen(max_tokens=2)
                arm b:
                    x = gen(max_tokens=3)
                arm c:
                    x = gen(max_tokens=4)
            return [s.b.index, s.b.x, s.c.index]
        """
    last = compared(text, tmp_path, ("dead",), tuple(PASSES))
    assert last.usage.calls == 2


@pytest.mark.parametrize("read", ["b[1].x", "[one.x for one in b]"])
def test_what_the_next_round_reads_is_not_dead(tmp_path: Path, read: str) -> None:
    text = f"""
        program main():
            fork 3 as b:
                x = gen(max_tokens=2, temperature=1)
            for n in range(3):
                fork 3 as b:
                    " again ${{{read}}}"
                    x = gen(max_tokens=2, temperature=1)
            return b[0].x
        """
    compared(text, tmp_path, ("dead",), tuple(PASSES))


@pytest.mark.parametrize(
    "calls",
    [
        "a = f(1)\nb = f(0)",
        "a = f(1)\nb = f(2)\nc = f(3)\nd = f(0)",
        "for n in [2, 1]:\n    b = f(n - 1)\n    a = f(1)\n    c = b",
        "if len(word) > 1:\n    a = f(1)\nb = f(0)",
        "a = f(1)\nfork 2 as d:\n    b = f(0)\nb = d",
        "use ask()\nb = f(0)",
    ],
)
def test_a_fault_names_its_call_whatever_was_dropped_before_it(tmp_path: Path, calls: str) -> None:
    lines = calls.replace("\n", "\n            ")
    text = f"""
        program main(word: str):
            {lines}
            return [word, b]

        fragment ask():
            a = f(1)

        program f(n: int):
            return 1 // n
        """
    compared(text, tmp_path, ("dead",), tuple(PASSES), word="fox")


@pytest.mark.parametrize(
    "before",
    [
        "use tries()",
        "if len(word) > 1:\n    use tries()",
        "for n in [1, 2]:\n    use tries()",
        "use tries()\nuse tries()",
    ],
)
def test_a_fork_draws_the_same_whatever_was_dropped_before_it(tmp_path: Path, before: str) -> None:
    lines = before.replace("\n", "\n            ")
    text = f"""
        program main(word: str):
            "The ${{word}}"
            {lines}
            fork 2 as b:
                x = gen(max_tokens=2, temperature=1)
            return b[0].x + b[1].x

        fragment tries():
            fork 2 as b:
                x = gen(max_tokens=1, temperature=1)
        """
    compared(text, tmp_path, ("dead",), tuple(PASSES), word="fox")


def test_a_variable_that_is_bound_again_keeps_its_order(tmp_path: Path) -> None:
    text = """
        program main():
            c = f()
            d = "1"
            fork 2 as b:
                d = "2"
                c = "3"
            " ${b[0]}"
            x = gen(max_tokens=2)
            return [x, b]

        program f():
            return 1
        """
    compared(text, tmp_path, ("dead",), tuple(PASSES))


# Heads -------------------------------------------------------------------------------------------------------


def test_a_fault_at_the_beginning_of_all_branches_is_the_first_branch_s(tmp_path: Path) -> None:
    text = """
        program main(n: int):
            fork 2 as b:
                "${1 // n}"
                x = gen(max_tokens=2)
            return b[0].x
        """
    last = compared(text, tmp_path, ("hoist",), tuple(PASSES), n=0)
    assert {fault.path for fault in last.faults} <= {("b[0]",), ("b[1]",)}


# All of them -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_random_programs_mean_what_the_oracle_says(seed: int, tmp_path: Path) -> None:
    compared(random_program(Random(seed)), tmp_path, tuple(PASSES), word=WORD)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.randoms(use_true_random=False))
def test_no_pass_changes_what_a_random_program_means(random: Random) -> None:
    text = random_program(random)
    with TemporaryDirectory() as folder:
        # One in a hundred reads a variable that has no value on some way.
        assume(checked_text(text, Path(folder)).ok)
        compared(text, Path(folder), *ALONE, tuple(PASSES), word=WORD)
