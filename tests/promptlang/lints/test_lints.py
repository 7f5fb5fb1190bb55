"""Cache lints: what they say, that the move wins what they say, and where they keep silent."""

from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from places import ROOT
from tiny_engine import tiny_engine, tiny_tokenizer

from promptlang.checker.check import check
from promptlang.cli.check import checked
from promptlang.compiler.graph import Graph
from promptlang.compiler.lower import lower
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Source
from promptlang.interpreter.interpreter import Interpreter
from promptlang.lints.cache import lint
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.usage import Usage
from promptlang.syntax.loader import load_source
from promptlang.values.conversion import bind_arguments

FIXED = "The quick brown fox jumps over the lazy dog; the dog sleeps, and the fox runs over the hill, again and again."


def graphs_of(text: str) -> dict[str, Graph]:
    bundle = check(load_source(Source(dedent(text).strip() + "\n")))
    assert bundle.ok, bundle.diagnostics
    return lower(bundle)


def count(text: str) -> int:
    return len(tiny_tokenizer().encode(text))


def codes_of(text: str) -> list[str]:
    return [found.code for found in lint(graphs_of(text))]


def loss_of(text: str) -> int:
    """The tokens that the only lint of a program speaks of, counted as the tiny model does."""
    [found] = lint(graphs_of(text), count)
    return tokens_in(found)


def tokens_in(found: Diagnostic) -> int:
    return int(found.message.partition("about ")[2].split()[0])


def computed(text: str, rows: list[dict[str, Any]]) -> int:
    """Prompt tokens that the rows computed."""
    graphs = graphs_of(text)
    engine = tiny_engine(1 << 14)
    interpreter = Interpreter(LocalBackend(engine), graphs)
    total = Usage()
    for number, row in enumerate(rows):
        usage = Usage()
        interpreter.wait(interpreter.start("main", bind_arguments(graphs["main"], row), number, usage=usage))
        total.add_tokens(usage)
    return total.computed_tokens


# What the move wins ----------------------------------------------------------------------------------------------

MOVES = {
    "calls": (
        """
        program main(word: str):
            system: "You help ${word}. FIXED"
            assistant: x = gen(max_tokens=1)
            return x
        """,
        """
        program main(word: str):
            system: "FIXED You help ${word}."
            assistant: x = gen(max_tokens=1)
            return x
        """,
        [{"word": word} for word in ("fox", "dog", "hill", "lazy", "brown", "quick")],
        5,
    ),
    "a program that is called": (
        """
        program main():
            a = ask("fox")
            b = ask("dog")
            c = ask("hill")
            return [a, b, c]

        program ask(word: str):
            "About ${word}: FIXED"
            x = gen(max_tokens=1)
            return x
        """,
        """
        program main():
            a = ask("fox")
            b = ask("dog")
            c = ask("hill")
            return [a, b, c]

        program ask(word: str):
            "FIXED About ${word}:"
            x = gen(max_tokens=1)
            return x
        """,
        [{}],
        2,
    ),
    "branches": (
        """
        program main():
            fork word in ["fox", "dog", "hill", "lazy"] as b:
                user: "Write of the ${word}. FIXED"
                assistant: x = gen(max_tokens=1)
            return [one.x for one in b]
        """,
        """
        program main():
            fork word in ["fox", "dog", "hill", "lazy"] as b:
                user: "FIXED Write of the ${word}."
                assistant: x = gen(max_tokens=1)
            return [one.x for one in b]
        """,
        [{}],
        3,
    ),
    "rounds": (
        """
        program main(words: list[str]):
            found = []
            for word in words:
                "FIXED"
                " ${word}:"
                x = gen(max_tokens=1)
                found = found + [x]
            return found
        """,
        """
        program main(words: list[str]):
            "FIXED"
            found = []
            for word in words:
                " ${word}:"
                x = gen(max_tokens=1)
                found = found + [x]
            return found
        """,
        [{"words": ["fox", "dog", "hill", "lazy", "brown", "quick"]}],
        5,
    ),
}


@pytest.mark.parametrize("move", MOVES)
def test_the_move_wins_what_the_lint_says(move: str) -> None:
    before, after, rows, times = MOVES[move]
    before, after = before.replace("FIXED", FIXED), after.replace("FIXED", FIXED)
    assert not lint(graphs_of(after), count)
    won = computed(before, rows) - computed(after, rows)
    assert won == pytest.approx(times * loss_of(before), rel=0.1)


# What is a loss, and what is none --------------------------------------------------------------------------------


def program(body: str, parameters: str = "word: str", top: str = "") -> str:
    body = indent(dedent(body).strip().replace("FIXED", FIXED * 2), "    ")
    return f'{top}\nconst RULES = "{FIXED * 2}"\n\nprogram main({parameters}):\n{body}\n'


@pytest.mark.parametrize(
    "body",
    [
        '"${word} FIXED"\nx = gen()',
        '"${word} ${RULES}"\nx = gen()',
        'user: "${word}"\nuser: "FIXED"\nassistant: x = gen()',
        'loud = word.upper()\n"${loud} FIXED"\nx = gen()',
        'if word == "a":\n    "One. "\n"FIXED"\nx = gen()',
        'for one in word:\n    "${one} "\n"FIXED"\nx = gen()',
        '"${word}"\nfor shot in ["a", "b"]:\n    "${shot}: ${RULES}"\nx = gen()',
        'rules = RULES + "!"\n"${word} ${rules}"\nx = gen()',
    ],
)
def test_fixed_text_behind_what_differs_is_a_loss(body: str) -> None:
    assert "PL501" in codes_of(program(body))


@pytest.mark.parametrize(
    "body",
    [
        '"FIXED ${word}"\nx = gen()',
        '"${word} Which team?"\nx = gen()',
        '"${word}"\nx = gen()\n" FIXED"\ny = gen()',
        '"${RULES} ${RULES} ${word}"\nx = gen()',
        'word = "the same"\n"${word} FIXED"\nx = gen()',
        'if len(RULES) > 3:\n    "${RULES}"\nelse:\n    "${word}"\n"FIXED"\nx = gen()',
        'score_of = score("${word}")\n"FIXED"\nx = gen()',
        '[word for word in RULES]\n"FIXED"'.replace('[word for word in RULES]\n"', 'log [word for word in RULES]\n"'),
    ],
)
def test_what_is_first_already_or_short_or_behind_an_answer_is_none(body: str) -> None:
    assert codes_of(program(body)) == []


def test_a_parameter_left_at_its_default_is_the_same_for_all() -> None:
    assert codes_of(program('"${word} FIXED"\nx = gen()', 'word: str = "fox"')) == []


def test_a_program_that_runs_once_shares_with_nobody() -> None:
    text = program('a = ask("fox")', "") + program('"${word} FIXED"\nx = gen()').replace("main", "ask").replace(
        "const RULES", "const OTHER"
    )
    assert codes_of(text) == []
    assert codes_of(text.replace("program main()", "program main(w: str)")) == []
    assert codes_of(text.replace('ask("fox")', "ask(w)").replace("program main()", "program main(w: str)")) == ["PL501"]


@pytest.mark.parametrize(
    "often",
    [
        "beam depth=2 width=1 branch=2 by 1 as paths:\n    a = ask(w)\n    b = gen(temperature=1)",
        "a = ask(w)\nrequire len(a) > 3 else retry 2",
    ],
)
def test_what_a_beam_or_a_require_repeats_runs_often(often: str) -> None:
    asked = f'program ask(word: str) -> str:\n    "${{word}} {FIXED * 2}"\n    x = gen(temperature=1)\n    return x\n'
    assert codes_of(program(often, "w: str", asked)) == ["PL501"]
    assert codes_of(program("a = ask(w)", "", asked).replace("ask(w)", 'ask("fox")')) == []


@pytest.mark.parametrize(("head", "several"), [("fork x in {} as b:", "PL502"), ("for x in {}:", "PL503")])
def test_one_branch_or_round_shares_with_nobody(head: str, several: str) -> None:
    def codes(items: str) -> list[str]:
        body = f'{head.format(items)}\n    user: "${{x}}"\n    user: "FIXED"\n    assistant: y = gen()'
        return codes_of(program(body, ""))

    assert codes('["fox", "dog"]') == [several]
    assert codes('["fox"]') == []


def test_text_in_a_fragment_is_marked_there_once() -> None:
    text = program(
        "use ask(word)\nassistant: x = gen()\nfork 2 as b:\n    use ask(word)\n    assistant: y = gen()",
        top=f'fragment ask(w: str):\n    user: "${{w}} {FIXED * 2}"\n',
    )
    [found] = lint(graphs_of(text))
    assert found.span.position.line == 2
    assert found.span.text == f'{FIXED * 2}"'


def test_arms_share_what_all_of_them_say() -> None:
    arm = 'arm {0}:\n        user: "{0}"\n        user: "FIXED{1}"\n        assistant: x = gen()\n'
    same = "fork as b:\n    " + arm.format("one", "") + "    " + arm.format("two", "")
    other = "fork as b:\n    " + arm.format("one", "") + "    " + arm.format("two", " Or not.")
    assert codes_of(program(same, "")) == ["PL502"]
    assert codes_of(program(other, "")) == []


def test_arms_share_the_words_that_their_texts_end_in() -> None:
    def arms(one: str, other: str) -> str:
        texts = {"a": one, "b": other}
        written = (
            f'    arm {name}:\n        user: "{text}"\n        assistant: x = gen()' for name, text in texts.items()
        )
        return program("\n".join(["fork as sides:", *written]), "")

    assert codes_of(arms("Is it clear? FIXED", "How is the tone? FIXED")) == ["PL502"]
    assert codes_of(arms("FIXED Is it clear?", "FIXED How is the tone?")) == []
    assert codes_of(arms("Is it clear? FIXED Yes.", "How is the tone? FIXED Good?")) == []


def test_a_counted_fork_has_nothing_that_differs() -> None:
    assert codes_of(program('fork 3 as b:\n    "FIXED"\n    x = gen(temperature=1)', "")) == []


@pytest.mark.parametrize("file", sorted([*ROOT.glob("examples/*.pl"), *ROOT.glob("tests/programs/good/*.pl")]))
def test_examples_and_good_programs_have_no_lints(file: Path) -> None:
    assert not [found for found in checked(str(file)).diagnostics if found.code.startswith("PL5")]


MANY_LINES = 20


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(file, id=file.stem, marks=pytest.mark.slow if file.read_bytes().count(b"\n") > MANY_LINES else ())
        for file in sorted(ROOT.glob("tests/programs/*/*.pl"))
    ],
)
def test_every_program_can_be_read_with_any_line_left_out(file: Path) -> None:
    lines = file.read_text(errors="replace").splitlines(keepends=True)
    for left_out in range(len(lines)):
        bundle = check(load_source(Source("".join(lines[:left_out] + lines[left_out + 1 :]))))
        if bundle.ok:
            lint(lower(bundle))
