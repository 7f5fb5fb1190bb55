"""What a program knows of its future is worth room in the cache, and never changes a result."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from recording_engine import RecordingEngine

from promptlang.checker.check import check
from promptlang.compiler.graph import CallNode, GenNode, Graph, walk
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.optimise import optimise
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.run import RunError
from promptlang.runtime.cache.eviction import make_policy
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.simulation.simulator import Call, belady, footprint, replay
from promptlang.runtime.usage import Usage
from promptlang.syntax.loader import load
from promptlang.values.conversion import bind_arguments, to_json

Write = Callable[[str], str]
Rows = Sequence[dict[str, Any]]


VOCABULARY = ["the", "fox", "dog", "hill", "lazy", "quick", "brown", "jumps", "over"]


def words(seed: int, count: int) -> str:
    return " ".join(np.random.default_rng(seed).choice(VOCABULARY, count))


def stages(*lengths: int) -> str:
    """Three agents called in turn for each ticket, with instructions of so many words."""
    planner, writer, reviewer = (words(seed, length) for seed, length in enumerate(lengths))
    return f"""
program main(tickets: list[str]):
    done = []
    for ticket in tickets:
        plan = planner(ticket)
        draft = writer(ticket, plan)
        verdict = reviewer(ticket, draft)
        done = done + [verdict]
    return done

program planner(ticket: str):
    system: "{planner}"
    user: "${{ticket}}"
    assistant: plan = gen(max_tokens=12, temperature=1)
    return plan

program writer(ticket: str, plan: str):
    system: "{writer}"
    user: "${{ticket}} ${{plan}}"
    assistant: draft = gen(max_tokens=20, temperature=1)
    return draft

program reviewer(ticket: str, draft: str):
    system: "{reviewer}"
    user: "${{ticket}} ${{draft}}"
    assistant: verdict = gen(max_tokens=6, temperature=1)
    return verdict
"""


AGENTS = f"""
program main(tickets: list[str]):
    system: "{words(7, 40)}"
    fork ticket in tickets as agents:
        user: "${{ticket}} Make a plan."
        assistant: plan = gen(max_tokens=30, temperature=1)
        notes = []
        for step in range(3):
            fork 1 as work:
                user: "Do step ${{step}}."
                assistant: note = gen(max_tokens=16, temperature=1)
            notes = notes + [work[0].note]
        user: "Report: ${{notes}}"
        assistant: report = gen(max_tokens=20, temperature=1)
    return [one.report for one in agents]
"""


def graphs_of(write: Write, text: str) -> dict[str, Graph]:
    checked = check(load(write(text)))
    assert checked.ok, checked.diagnostics
    return optimise(lower(checked)).graphs


@dataclass
class Ran:
    """Results, hit rate and calls of a run."""

    results: list[Any]
    hit_rate: float
    calls: list[Call]


def run(graphs: dict[str, Graph], rows: Rows, tokens: int, policy: str = "program") -> Ran:
    """All rows at once, on an engine with so much room."""
    engine, usage = RecordingEngine(tokens, policy), Usage()
    interpreter = Interpreter(LocalBackend(engine), graphs)
    tasks = [
        interpreter.start(
            "main", bind_arguments(graphs["main"], row), number, usage=usage, more_follow=number + 1 < len(rows)
        )
        for number, row in enumerate(rows)
    ]
    results = [to_json(interpreter.wait(task).result) for task in tasks]
    engine.check()
    assert_nothing_is_claimed(engine)
    return Ran(results, usage.cached_tokens / usage.requested_tokens, engine.calls)


def assert_nothing_is_claimed(engine: RecordingEngine) -> None:
    assert not any(node.holds or node.uses or node.locks for node in engine.tree.nodes())


def tickets(count: int, length: int) -> list[str]:
    return [words(100 + number, length) for number in range(count)]


IN_TURN: dict[str, str] = {"equal": stages(200, 200, 200), "unequal": stages(300, 80, 200)}

ROWS: Rows = [{"tickets": tickets(12, 6)[start : start + 4]} for start in range(0, 12, 4)]


def room_for(calls: list[Call]) -> int:
    """30 % of what all calls take together."""
    return footprint(calls) * 3 // 10


@pytest.mark.slow
@pytest.mark.parametrize("name", IN_TURN)
def test_a_program_of_three_stages_hits_nearly_as_often_as_if_it_knew_the_future(program: Write, name: str) -> None:
    graphs, rows = graphs_of(program, IN_TURN[name]), [{"tickets": tickets(8, 6)}]
    roomy = run(graphs, rows, 30_000)
    budget = room_for(roomy.calls)
    tight = run(graphs, rows, budget)
    assert tight.results == roomy.results
    assert tight.hit_rate >= 0.95 * belady(tight.calls, budget).hit_rate
    unaware = replay(RadixTree(SlotAllocator(budget), make_policy("lru")), tight.calls)
    assert tight.hit_rate >= 1.5 * unaware.hit_rate


@pytest.mark.slow
def test_rows_of_stages_hit_more_often_than_without_the_program(program: Write) -> None:
    aware, unaware = with_and_without(program, stages(200, 200, 200), ROWS)
    assert aware.hit_rate > unaware.hit_rate


@pytest.mark.slow
def test_agents_beside_each_other_hit_about_as_often_as_without_the_program(program: Write) -> None:
    """Their prompts are all alive at once, and what is alive is read again in the order it was written in: recency
    knows that too."""
    aware, unaware = with_and_without(program, AGENTS, [{"tickets": tickets(10, 60)}])
    assert aware.hit_rate > 0.95 * unaware.hit_rate


def with_and_without(program: Write, text: str, rows: Rows) -> tuple[Ran, Ran]:
    """One workload in little room, evicting by what the program knows, and by recency alone."""
    graphs = graphs_of(program, text)
    roomy = run(graphs, rows, 30_000)
    aware, unaware = (run(graphs, rows, room_for(roomy.calls), policy) for policy in ("program", "lru"))
    assert aware.results == unaware.results == roomy.results
    return aware, unaware


# What is told ------------------------------------------------------------------------------------------------


def test_the_nearest_call_of_each_program_is_known_before_every_node(program: Write) -> None:
    graph = graphs_of(program, stages(1, 1, 1))["main"]
    calls = {node.callee: dict(node.next_calls) for node in walk(graph.body) if isinstance(node, CallNode)}
    assert calls == {
        "planner": {"planner": 0, "writer": 1, "reviewer": 2},
        "writer": {"writer": 0, "reviewer": 1, "planner": 2},
        "reviewer": {"reviewer": 0, "planner": 1, "writer": 2},
    }


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("x = gen()\n    if len(x) > 3:\n        x = gen()\n    y = ask(x)", {"ask": 2}),
        ("x = gen()\n    return x", {}),
        ("x = gen()\n    while len(x) < 3:\n        x = gen()\n        y = ask(x)\n        log y", {"ask": 2}),
        ('fork 2 as b:\n        y = ask("a")\n        log y\n    x = gen()', {"ask": 0}),
        ('y = twice("a")\n    log y', {"twice": 0, "ask": 1}),
    ],
)
def test_distances_count_the_model_calls_between(program: Write, body: str, expected: dict[str, int]) -> None:
    graphs = graphs_of(
        program,
        f"""
program main():
    "The fox"
    {body}

program twice(x: str):
    "${{x}}"
    y = gen()
    z = ask(y)
    return z

program ask(x: str):
    "${{x}}"
    y = gen()
    return y
""",
    )
    assert dict(graphs["main"].body.nodes[0].next_calls) == expected


def test_the_rounds_of_a_beam_go_round(program: Write) -> None:
    text = """
program main():
    "The fox"
    beam depth=2 width=1 branch=2 by len(y) as paths:
        y = ask("a")
        z = gen(max_tokens=2)
    return paths[0].y

program ask(x: str):
    "${x}"
    y = gen(max_tokens=2)
    return y
"""
    graph = graphs_of(program, text)["main"]
    (answer,) = (node for node in walk(graph.body) if isinstance(node, GenNode))
    assert dict(answer.next_calls) == {"ask": 1}


def test_a_program_that_calls_itself_has_a_length(program: Write) -> None:
    text = """
program main(n: int):
    "The fox"
    x = gen(max_tokens=2)
    if n > 0:
        y = main(n - 1)
        log y
    return x
"""
    graphs = graphs_of(program, text)
    assert dict(graphs["main"].body.nodes[0].next_calls) == {"main": 1}
    assert run(graphs, [{"n": 3}], 300).results


@pytest.mark.parametrize("ending", ["whole", "fault", "pruned"])
def test_nothing_is_expected_any_more_when_a_run_has_ended(program: Write, ending: str) -> None:
    last = {"whole": "log x", "fault": "log [1][5]", "pruned": "keep where false"}[ending]
    graphs = graphs_of(
        program,
        f"""
program main(n: int):
    "The fox"
    fork 2 as b or none:
        x = ask("a")
        {last}
        if n > 0:
            y = ask("b")
            log y

program ask(x: str):
    "The quick brown ${{x}}"
    y = gen(max_tokens=2)
    return y
""",
    )
    engine = RecordingEngine(400, "program")
    interpreter = Interpreter(LocalBackend(engine), graphs)
    task = interpreter.start("main", {"n": 1})
    if ending == "fault":
        with pytest.raises(RunError):
            interpreter.wait(task)
    else:
        interpreter.wait(task)
    engine.check()
    assert_nothing_is_claimed(engine)


def test_what_rows_begin_with_stays_until_the_last_has_begun(program: Write) -> None:
    graphs = graphs_of(
        program,
        f"""
program main(x: str):
    "{words(1, 60)} ${{x}}"
    y = gen(max_tokens=2)
    return y
""",
    )
    engine = RecordingEngine(300, "program")
    interpreter = Interpreter(LocalBackend(engine), graphs)
    for number in range(3):
        interpreter.wait(interpreter.start("main", {"x": str(number)}, more_follow=number < 2))
        expected = [engine.tree.tokens_of(node) for node in engine.tree.nodes() if node.uses]
        assert len(expected) == (number < 2)
    assert_nothing_is_claimed(engine)
