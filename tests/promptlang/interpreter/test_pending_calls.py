"""Calls under way: who waits for them, and who doesn't."""

import json
from pathlib import Path

import pytest
from program_runner import Runner, fault

from promptlang.values.conversion import to_json

SLOW = """

        program slow() -> str:
            "Slow and steady"
            said = gen(min_tokens=50, max_tokens=50)
            return said
"""


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


FORK = """
            fork 2 as ways:
                y = gen(min_tokens=5, max_tokens=5)
"""
ARMS = """
            fork as ways:
                arm left:
                    y = gen(min_tokens=5, max_tokens=5)
                arm right:
                    "and"
"""
BEAM = """
            beam depth=2 width=1 branch=2 by len(y) as ways:
                y = gen(min_tokens=5, max_tokens=5)
"""


@pytest.mark.parametrize("block", [FORK, ARMS, BEAM])
def test_a_branch_does_not_wait_for_a_call_of_its_parent_that_it_never_reads(run: Runner, block: str) -> None:
    text = f"""
        program main() -> str:
            x = slow()
            "The fox"
{block}
            z = gen(min_tokens=50, max_tokens=50)
            log ways
            return x
    """
    run(text + SLOW)
    assert run.engine.usage.forwards < 70


def test_a_branch_that_reads_a_call_of_its_parent_waits_for_it(run: Runner) -> None:
    text = """
        program main() -> bool:
            x = slow()
            "The fox"
            fork 2 as ways:
                y = x
                "${x}"
            return ways[0].y == x and ways[0].text == x
    """
    assert run(text + SLOW) is True


@pytest.mark.parametrize(
    ("body", "result"),
    [
        ("adopt ways[0]\n            return [x]", 1),
        ("adopt ways[1]\n            fork 1 as more:\n                w = y\n            return [more[0].w, x]", 2),
        ("return ways", 2),
        ('told = "${ways}"\n            return [told]', 1),
        ("fork way in ways as more:\n                adopt way\n                w = y\n            return more", 2),
        ("fork way in ways as more:\n                adopt way\n                w = x\n            return more", 2),
        ("x = 3\n            adopt ways[0]\n            return [x]", 1),
    ],
)
def test_a_call_that_a_branch_inherits_never_shows_as_anything_but_its_value(
    run: Runner, body: str, result: int
) -> None:
    outcome = run.outcome(
        f"""
        program main():
            x = slow()
            "The fox"
            fork 2 as ways:
                y = gen(max_tokens=2)
            {body}
        """
        + SLOW
    )
    found = to_json(outcome.result)
    assert len(found) == result
    assert "Task" not in json.dumps(found)
    assert "Task" not in json.dumps(to_json(outcome.variables))


def test_a_call_that_fails_is_a_fault_though_nobody_reads_it(run: Runner) -> None:
    caught = fault(
        run,
        """
        program main():
            unused = broken([])
            "The fox"
            fork 2 as ways:
                y = gen(max_tokens=2)
            return ways

        program broken(items: list[str]):
            "A"
            z = gen(max_tokens=3)
            return items[7]
        """,
    )
    assert caught.span.text == "items[7]"
    assert caught.path == ("broken()",)


def test_a_call_that_a_branch_started_fails_that_branch_though_nobody_reads_it(run: Runner) -> None:
    caught = fault(
        run,
        """
        program main():
            "The fox"
            fork 2 as ways:
                unused = broken([])
            return ways

        program broken(items: list[str]):
            "A"
            z = gen(max_tokens=3)
            return items[7]
        """,
    )
    assert caught.path in (("ways[0]", "broken()"), ("ways[1]", "broken()"))
