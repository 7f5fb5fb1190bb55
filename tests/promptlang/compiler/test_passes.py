"""What each pass wins, on the tiny random model, and that results are the same without it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tiny_engine import tiny_engine

from promptlang.checker.check import check
from promptlang.compiler.graph import BeamNode, ForkNode, Graph, TextNode, render, walk
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.ahead import options_ahead, shapes_ahead
from promptlang.compiler.passes.optimise import PASSES, Optimised, UnknownPassError, optimise, pass_names
from promptlang.grammar.shapes import Bool, Int
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.observer import SilentObserver
from promptlang.interpreter.run import RunError
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.usage import Usage
from promptlang.syntax.loader import load
from promptlang.values.conversion import bind_arguments, to_json


@dataclass
class Texts(SilentObserver):
    """Counts what a program writes."""

    count: int = 0

    def text(self, path: tuple[str, ...], text: str) -> None:
        self.count += 1


@dataclass
class Ran:
    """One run: what came out, and what it took."""

    result: Any
    variables: Any
    usage: Usage
    texts: int
    graph: Graph
    optimised: Optimised = field(repr=False)

    @property
    def nodes(self) -> int:
        return sum(1 for _ in walk(self.graph.body))

    @property
    def told(self) -> list[str]:
        return [f"{one.name}: {one.what}" for one in self.optimised.findings[self.graph.name]]


class Runner:
    """Runs program texts after some passes."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "program.pl"

    def graphs(self, text: str) -> dict[str, Graph]:
        self._file.write_text(dedent(text).strip() + "\n")
        checked = check(load(self._file))
        assert checked.ok, checked.diagnostics
        return lower(checked)

    def __call__(self, text: str, *passes: str, tokens: int = 4096, **arguments: Any) -> Ran:
        optimised = optimise(self.graphs(text), passes)
        graph = next(iter(optimised.graphs.values()))
        engine, texts, usage = tiny_engine(tokens), Texts(), Usage()
        interpreter = Interpreter(LocalBackend(engine), optimised.graphs)
        task = interpreter.start(graph.name, bind_arguments(graph, arguments), observer=texts, usage=usage)
        outcome = interpreter.wait(task)
        engine.check()
        assert not any(node.holds for node in engine.tree.nodes())
        return Ran(to_json(outcome.result), to_json(outcome.variables), usage, texts.count, graph, optimised)

    def both(self, text: str, name: str, **arguments: Any) -> tuple[Ran, Ran]:
        """Without any pass, and with this one; the results are the same."""
        without, after = self(text, **arguments), self(text, name, **arguments)
        assert after.result == without.result
        return without, after


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


# Folding -----------------------------------------------------------------------------------------------------


def test_folding_joins_texts_and_puts_constants_in(run: Runner) -> None:
    plain, folded = run.both(
        """
        const WHO = "fox"
        const TIMES = 3

        program main(word: str):
            "The ${WHO} "
            "jumps ${TIMES * 2} times, "
            "${word}!"
            fork 1 as b:
                "${WHO}" " and"
            x = gen(max_tokens=TIMES)
            return [x, b[0].text]
        """.replace('"${WHO}" " and"', '"${WHO} and"'),
        "fold",
        word="dog",
    )
    assert folded.nodes == plain.nodes - 2
    assert folded.texts == plain.texts - 2
    texts = [node.text.parts for node in walk(folded.graph.body) if isinstance(node, TextNode)]
    assert texts[0][0] == "The fox jumps 6 times, "
    assert texts[1] == ("fox and",)
    assert next(node.reads for node in walk(folded.graph.body) if isinstance(node, TextNode)) == {"word"}


def test_folding_drops_what_a_constant_rules_out(run: Runner) -> None:
    plain, folded = run.both(
        """
        const LEVEL = 2

        program main():
            "The fox"
            if LEVEL > 2:
                " sleeps"
            elif LEVEL == 2:
                " jumps"
            else:
                " runs"
            x = gen(max_tokens=3)
            return x
        """,
        "fold",
    )
    assert folded.nodes == plain.nodes - 4
    assert [one.removed for one in folded.optimised.findings["main"]].count(True) == 2


def test_folding_leaves_a_fault_where_it_is(run: Runner) -> None:
    program = """
        const N = 0

        program main(go: bool):
            if go:
                "${1 / N}"
            return 1 if not go else 1 % N
        """
    assert run(program, "fold", go=False).result == 1
    with pytest.raises(RunError, match="division by zero"):
        run(program, "fold", go=True)


def test_folding_knows_a_variable_from_a_constant_of_that_name(run: Runner) -> None:
    run.both(
        """
        const N = 1

        fragment say(n: int):
            "${n + N}"

        program main():
            fork 1 as b:
                use say(4)
            return [b[0].text, [n * N for n in [2, 3]]]
        """,
        "fold",
    )


# Hoisting ----------------------------------------------------------------------------------------------------


def test_a_common_head_is_written_once(run: Runner) -> None:
    plain, hoisted = run.both(
        """
        program main(word: str):
            "The ${word}. "
            fork x in ["fox", "dog", "hill", "lazy"] as b:
                "All branches read this ${word}. "
                "This is "
                "about ${x}:"
                y = gen(max_tokens=4, temperature=1)
            z = gen(max_tokens=3)
            return [[one.y for one in b], [one.text for one in b], z]
        """,
        "hoist",
        word="quick",
    )
    assert plain.texts == 1 + 4 * 3
    assert hoisted.texts == 1 + 2 + 4
    assert hoisted.usage.computed_tokens == plain.usage.computed_tokens
    fork = next(node for node in walk(hoisted.graph.body) if isinstance(node, ForkNode))
    assert [len(fork.head.nodes), len(fork.bodies[0].nodes)] == [2, 2]


def test_arms_that_begin_alike_share_their_turns(run: Runner) -> None:
    plain, hoisted = run.both(
        """
        program main():
            user: "The fox."
            fork as b:
                arm one:
                    user: "Tell me."
                    assistant: "It jumps"
                    user: "Where?"
                    assistant: x = gen(max_tokens=3)
                arm two:
                    user: "Tell me."
                    assistant: "It sleeps"
                    user: "Where?"
                    assistant: x = gen(max_tokens=3)
            return [b.one.x, b.two.x, b.one.text, b.two.text]
        """,
        "hoist",
    )
    assert hoisted.nodes == plain.nodes - 2
    assert hoisted.texts == plain.texts - 1


def test_no_branch_no_head(run: Runner) -> None:
    program = """
        program main(n: int):
            fork n as b:
                "${1 / n}"
            return len(b)
        """
    assert run(program, "hoist", n=0).result == 0


# Dead code ---------------------------------------------------------------------------------------------------


def test_what_nothing_reads_never_runs(run: Runner) -> None:
    plain, live = run.both(
        """
        program main():
            "The fox"
            first = ask("dog")
            second = len(first)
            fork 3 as drafts:
                " jumps"
                y = gen(max_tokens=5, temperature=1)
            x = gen(max_tokens=3)
            return x

        program ask(word: str):
            "The ${word}"
            x = gen(max_tokens=5)
            return x
        """,
        "dead",
    )
    assert plain.usage.calls == 5
    assert live.usage.calls == 1
    assert live.nodes == 3


def test_what_is_dead_can_not_fail(run: Runner) -> None:
    program = """
        program main():
            fork n in [1, 0] as b:
                y = 1 / n
            return 5
        """
    with pytest.raises(RunError):
        run(program)
    assert run(program, "dead").result == 5


def test_a_log_in_a_branch_or_in_a_call_keeps_it_alive(run: Runner) -> None:
    _, live = run.both(
        """
        program main():
            fork 2 as b:
                log "here"
            c = tell()
            return 1

        program tell():
            log "there"
            return 2
        """,
        "dead",
    )
    assert not live.told


def test_without_a_return_every_variable_is_a_result(run: Runner) -> None:
    _, live = run.both(
        """
        program main():
            a = ask()
            "The fox"

        program ask():
            return 2
        """,
        "dead",
    )
    assert live.result == {"a": 2}


def test_an_arm_and_a_branch_that_nothing_reads_never_run(run: Runner) -> None:
    plain, live = run.both(
        """
        program main():
            "The fox"
            fork as b:
                arm one:
                    x = gen(max_tokens=3)
                arm two:
                    x = gen(max_tokens=4)
            fork 5 as c:
                x = gen(max_tokens=3, temperature=1)
            adopt c[1]
            return [b.one.x, c[0].x, x]
        """,
        "dead",
    )
    assert (plain.usage.calls, live.usage.calls) == (7, 3)


def test_a_branch_that_competes_is_alive(run: Runner) -> None:
    plain, live = run.both(
        """
        program main():
            fork n in [1, 3, 2] as a:
                keep 1 by n
            fork 3 as b:
                "The"
                x = gen(int in 1..9, temperature=1)
                keep 1 by x
            return [a[0].n, b[0].x]
        """,
        "dead",
    )
    assert live.usage.calls == plain.usage.calls


# Merging -----------------------------------------------------------------------------------------------------


def test_equal_branches_run_once(run: Runner) -> None:
    plain, merged = run.both(
        """
        program main(n: int):
            "The fox"
            fork n as b:
                " jumps"
                x = gen(max_tokens=6, temperature=0)
                y = select("over", "under")
            adopt b[2]
            z = gen(max_tokens=3)
            return [[[one.index, one.x, one.y, one.text] for one in b], z]
        """,
        "merge",
        n=4,
    )
    assert merged.usage.calls == 3
    assert plain.usage.calls == 9
    assert merged.usage.generated_tokens < plain.usage.generated_tokens


@pytest.mark.parametrize(
    "body",
    ["x = gen(max_tokens=3, temperature=1)", "x = ask()", "x = gen(max_tokens=3)\nkeep first 1", 'x = 1\nlog "here"'],
)
def test_branches_that_may_differ_are_not_merged(run: Runner, body: str) -> None:
    lines = "\n".join(f"                {line}" for line in body.splitlines()).strip()
    _, merged = run.both(
        f"""
        program main():
            "The fox"
            fork 3 as b:
                {lines}
            return [one.x for one in b]

        program ask():
            "The dog"
            x = gen(max_tokens=5, temperature=1)
            return x
        """,
        "merge",
    )
    assert not merged.told


def test_arms_that_say_the_same_run_once(run: Runner) -> None:
    plain, merged = run.both(
        """
        program main():
            "The fox"
            fork as b:
                arm one:
                    x = gen(max_tokens=4)
                    " and"
                    y = select("over", "under")
                arm two:
                    x = gen(max_tokens=4)
                    " and"
                    y = select("over", "under")
            adopt b.two
            z = gen(max_tokens=3)
            return [b.one.x, b.two.x, b.one.y, b.two.text, b.two.index, z]
        """,
        "merge",
    )
    assert (plain.usage.calls, merged.usage.calls) == (5, 3)


# Early calls -------------------------------------------------------------------------------------------------


def test_a_call_runs_beside_what_it_does_not_need(run: Runner) -> None:
    plain, moved = run.both(
        """
        program main():
            "The fox"
            x = gen(max_tokens=10, min_tokens=10)
            n = 2
            a = ask("dog", n)
            return [x, a]

        program ask(word: str, n: int):
            "The ${word} ${n}"
            y = gen(max_tokens=10, min_tokens=10, temperature=1)
            return y
        """,
        "early",
    )
    assert plain.usage.forwards >= 20
    assert moved.usage.forwards <= 12


@pytest.mark.parametrize(
    "before",
    [
        "word = gen(max_tokens=3)",
        'y = gen(max_tokens=3)\nif len(y) < 100:\n    return "early"',
        'y = gen(max_tokens=3)\nb = ask(y)\nc = b\n"${c}"',
        'log "before"',
    ],
)
def test_a_call_does_not_pass_what_it_depends_on(run: Runner, before: str) -> None:
    lines = before.replace("\n", "\n            ")
    _, moved = run.both(
        f"""
        program main():
            word = "hill"
            "The fox"
            {lines}
            a = ask(word)
            return a

        program ask(word: str):
            "The ${{word}}"
            y = gen(max_tokens=2)
            return y
        """,
        "early",
    )
    order = [line.split()[0] for line in render(moved.graph).splitlines()[1:]]
    assert order == sorted(order, key=int)


# Last uses ---------------------------------------------------------------------------------------------------


def test_prompts_that_nothing_reads_again_make_room(run: Runner) -> None:
    program = """
        program main(words: list[str]):
            "The quick brown fox jumps over the lazy dog, again and again, all day long. "
            x = gen(max_tokens=4)
            seen = []
            for word in words:
                said = ask(word)
                seen = seen + [said]
            " And then"
            y = gen(max_tokens=4)
            return [x, seen, y]

        program ask(word: str):
            "${word} is the word; this is about ${word}, and nothing else but ${word}, ever: ${word}."
            x = gen(max_tokens=8, min_tokens=8, temperature=1)
            return x
        """
    words = ["fox", "dog", "hill", "lazy", "quick", "brown"]
    held, free = (run(program, *names, tokens=200, words=words) for names in ((), ("last_use",)))
    assert free.result == held.result
    assert free.usage.computed_tokens < held.usage.computed_tokens


def test_a_branch_that_is_adopted_keeps_its_prompt(run: Runner) -> None:
    _, marked = run.both(
        """
        program main():
            "The fox"
            fork 2 as b:
                x = gen(max_tokens=3)
            best = b[1]
            fork 2 as c:
                x = gen(max_tokens=3)
            adopt best
            y = gen(max_tokens=3)
            return [y, c[0].x]
        """,
        "last_use",
    )
    forks = {node.name: node for node in walk(marked.graph.body) if isinstance(node, ForkNode)}
    assert forks["b"].keeps_prompts
    assert not forks["c"].keeps_prompts
    assert forks["c"].ends_prompt
    assert not forks["b"].ends_prompt


def test_a_prompt_is_read_until_the_last_round_of_a_loop(run: Runner) -> None:
    _, marked = run.both(
        """
        program main():
            "The fox"
            seen = []
            for n in range(3):
                x = gen(max_tokens=3)
                seen = seen + [x]
            return seen
        """,
        "last_use",
    )
    ended = [type(node).__name__ for node in walk(marked.graph.body) if node.ends_prompt]
    assert ended == ["ForNode"]


# Ahead of time -----------------------------------------------------------------------------------------------


def test_the_shapes_of_all_answers_are_known_before_the_run(run: Runner) -> None:
    graphs = run.graphs("""
        program main():
            "The fox"
            x = gen(int in 1..5, max_tokens=3)
            y = gen(max_tokens=3)
            z = ask()
            return [x, y, z]

        program ask():
            fork 2 as b:
                x = gen(int in 1..5, max_tokens=3)
                y = gen(bool)
            return [[one.x, one.y] for one in b]
        """)
    assert shapes_ahead(graphs["main"], graphs) == (Int(1, 5), Bool())


def test_options_known_before_a_run_are_found_and_others_left(run: Runner) -> None:
    graphs = run.graphs("""
        const TEAMS = ["red", "blue"]

        program main(more: list[str]):
            x = select("yes", "no")
            y = select(options=TEAMS)
            z = select(options=more)
            w = select("yes", "no", x)
            return [x, y, z, w]
        """)
    assert set(options_ahead(graphs["main"], graphs)) == {("yes", "no"), ("red", "blue")}


# All together ------------------------------------------------------------------------------------------------


def test_passes_are_chosen_by_name() -> None:
    assert pass_names("all") == tuple(PASSES)
    assert pass_names("none") == ()
    assert pass_names("fold, dead") == ("fold", "dead")
    with pytest.raises(UnknownPassError, match="fold"):
        pass_names("folding")


PROGRAMS: Sequence[str] = (
    """
    const N = 2

    program main():
        user: "The fox. "
        assistant: kind = select("fox", "dog")
        fork 3 as drafts:
            user: "Write about ${kind}, ${N} words."
            assistant: body = gen(max_tokens=6, temperature=0.8)
            user: "Rate it."
            assistant: score = gen(int in 1..5)
            keep 1 by score
        adopt drafts[0]
        extra = ask(kind)
        unused = ask("dog")
        user: "And now?"
        assistant: end = gen(max_tokens=4)
        return [kind, body, score, extra, end]

    program ask(word: str):
        fork N as b:
            "The ${word}"
            x = gen(max_tokens=3)
        return [one.x for one in b]
    """,
    """
    fragment more(word: str):
        "More ${word}:"
        y = gen(max_tokens=2, temperature=1)

    program main():
        total = []
        for n in range(3):
            fork i in range(n + 1) as b:
                "Go on. "
                use more("fox")
                keep where i != 1
                x = gen(int in 0..9, temperature=1)
            total = total + [one.x for one in b]
            adopt b[0]
        return [total, x]
    """,
)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_passes_together_change_nothing(run: Runner, program: str) -> None:
    results = [run(program, *names).result for names in ((), *((name,) for name in PASSES), tuple(PASSES))]
    assert results == [results[0]] * len(results)


def test_passes_leave_what_they_are_given_alone(run: Runner) -> None:
    graphs = run.graphs(PROGRAMS[0])
    before = {name: render(graph) for name, graph in graphs.items()}
    optimise(graphs)
    assert {name: render(graph) for name, graph in graphs.items()} == before


# All of them ---------------------------------------------------------------------------------------------------------

SEARCH = """
    const MOST = 3

    program main(goal: str):
        "Goal: ${goal}."
        " Digits:"
        title = gen(max_tokens=4, temperature=1)
        require "e" not in title else retry 8
        unread = 1
        steps = []
        beam depth=2 width=2 branch=2 by mark as paths:
            " Next"
            ":"
            x = gen(int in 0..9, temperature=3)
            other = rate(x)
            mark = rate(x + 0)
            require mark > 1 else retry 16
            steps = steps + [x, mark]
        beam depth=1 width=1 branch=2 by x as unread_paths:
            x = gen(int in 0..9, temperature=3)
        late = rate(4)
        fork 2 as same:
            y = gen(max_tokens=3)
            require y != "*" else retry 1
        adopt paths[0]
        z = gen(max_tokens=3, temperature=1)
        return [title, steps, z, late, same[1].y, paths[0].score, [path.text for path in paths]]

    program rate(x: int) -> int:
        "Rate ${x}:"
        y = gen(int in 0..9, temperature=3)
        return y
"""


@pytest.mark.parametrize("name", [*PASSES, ",".join(PASSES)])
def test_a_search_gives_the_same_with_and_without_passes(run: Runner, name: str) -> None:
    without = run(SEARCH, goal="fox")
    after = run(SEARCH, *name.split(","), goal="fox")
    assert after.result == without.result


def test_a_beam_that_nothing_reads_never_runs(run: Runner) -> None:
    without, after = run.both(SEARCH, "dead", goal="fox")
    assert any("unread_paths" in str(one.node) for one in after.optimised.findings["main"])
    assert after.usage.calls < without.usage.calls


def test_a_beam_lets_its_prompts_go_unless_a_path_is_adopted(run: Runner) -> None:
    _, after = run.both(SEARCH, "last_use", goal="fox")
    beams = {node.name: node.keeps_prompts for node in walk(after.graph.body) if isinstance(node, BeamNode)}
    assert beams == {"paths": True, "unread_paths": False}


def test_what_was_taken_out_says_where_it_stood_among_what_is_left(run: Runner) -> None:
    graphs = run.graphs("""
        const LEVEL = 2

        program main():
            "One"
            " two"
            if LEVEL > 1:
                if LEVEL > 3:
                    unread = ask()
                unread_too = ask()
            x = gen(max_tokens=2)
            return x

        program ask():
            x = gen(max_tokens=2)
            return x
        """)
    optimised = optimise(graphs)
    gone = [finding for finding in optimised.findings["main"] if finding.removed]
    kept = {node.id for node in walk(optimised.graphs["main"].body)}
    assert len(gone) == 2
    assert all(finding.around is None for finding in gone)
    assert {finding.after for finding in gone} <= {None, *kept, *(finding.node.id for finding in gone)}


def test_a_branch_of_a_branch_that_is_adopted_keeps_its_prompt(run: Runner) -> None:
    _, marked = run.both(
        """
        program main():
            "The fox"
            fork 2 as b:
                fork 2 as inner:
                    x = gen(max_tokens=3)
            adopt b[0].inner[1]
            y = gen(max_tokens=3)
            return [x, y]
        """,
        "last_use",
    )
    assert all(node.keeps_prompts for node in walk(marked.graph.body) if isinstance(node, ForkNode))
