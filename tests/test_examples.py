"""Every example on the embedded model: what its result looks like, and what the cache saves."""

import json
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from places import EXAMPLES

import promptlang.session.opening as opening
from promptlang.cli.app import execute
from promptlang.cli.check import checked
from promptlang.cli.cost import estimates
from promptlang.runtime.models.loading import LoadedModel, load

TEAMS = {"billing", "network", "account"}

pytestmark = pytest.mark.slow


@cache
def loaded_once(name: str, dtype: str = "float32", progress: object = None) -> LoadedModel:
    return load(name)


Reports = list[dict[str, Any]]
Run = Callable[..., Reports]


@pytest.fixture(scope="module")
def known() -> dict[tuple[str, ...], Reports]:
    """What was run before: a run takes seconds, and gives the same every time."""
    return {}


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], known: dict[tuple[str, ...], Reports]
) -> Run:
    """Runs an example; gives its reports."""
    monkeypatch.setattr(opening, "load", lambda name, **_: loaded_once(name))

    def run_example(name: str, *arguments: str) -> Reports:
        if (name, *arguments) not in known:
            code = execute(["run", str(EXAMPLES / name), "--json", *arguments])
            captured = capsys.readouterr()
            assert code == 0, captured.err
            known[name, *arguments] = [json.loads(line) for line in captured.out.splitlines()]
        return known[name, *arguments]

    return run_example


def is_reply(result: Any) -> bool:
    return (
        list(result) == ["team", "urgency", "body"]
        and result["team"] in TEAMS
        and 1 <= result["urgency"] <= 5
        and "\n" not in result["body"]
    )


def is_conversation(result: Any) -> bool:
    return len(result) == 4 and all(list(turn) == ["question", "answer"] and turn["answer"] for turn in result)


def is_plan(result: Any) -> bool:
    return list(result) == ["idea", "step", "score"] and 2 <= result["score"] <= 20


def is_verdict(result: Any) -> bool:
    return (
        list(result) == ["notes", "grades", "verdict"]
        and len(result["notes"]) == 4
        and all(1 <= grade <= 5 for grade in result["grades"])
        and result["verdict"] in {"publish", "revise", "reject"}
    )


def is_answer(result: Any) -> bool:
    return list(result) == ["tool", "found"] and result["tool"] == "hours" and "9 to 13" in result["found"]


def is_poem(result: Any) -> bool:
    return list(result) == ["title", "lines", "score"] and len(result["lines"]) == 3 and result["score"] < 0


TOOLS = ["--tools", str(EXAMPLES / "agent_tools.py")]
CASES = [
    (["triage.pl", "--arg", "ticket=My bill is wrong"], is_reply),
    (["chat.pl"], is_conversation),
    (["tree_of_thought.pl"], is_plan),
    (["judge.pl"], is_verdict),
    (["beam.pl"], is_poem),
    (["agent.pl", *TOOLS, "--arg", "question=When are you open on Saturday?"], is_answer),
]


def each(names: str, values: Iterable[Any]) -> pytest.MarkDecorator:
    """A test for each example; in a parallel run, all tests of an example share a process, and so its run."""
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(*value, id=command[0], marks=pytest.mark.xdist_group(command[0]))
            for value, (command, _) in zip(values, CASES, strict=True)
        ],
    )


@each("command, fits", CASES)
def test_an_example_computes_each_token_once(command: list[str], fits: Callable[[Any], bool], run: Run) -> None:
    [cached], [uncached] = run(*command), run(*command, "--no-cache")
    usage, all_computed = cached["usage"], uncached["usage"]
    assert fits(cached["result"])
    assert uncached["result"] == cached["result"]
    assert usage["computed_tokens"] <= usage["optimal_tokens"] + usage["calls"]
    assert all_computed["computed_tokens"] == all_computed["requested_tokens"] == usage["requested_tokens"]
    assert usage["cached_tokens"] > 0.4 * usage["requested_tokens"]
    assert usage["cached_tokens"] + usage["computed_tokens"] == usage["requested_tokens"]


@each("command", [(command,) for command, _ in CASES])
def test_an_example_costs_what_was_predicted(command: list[str], run: Run) -> None:
    [report] = run(*command)
    name, *rest = command
    pairs = [part for option, part in pairwise(rest) if option == "--arg"]
    [estimate] = estimates({name: checked(str(EXAMPLES / name))}, 1, pairs)[name].values()
    for figure, between in estimate.figures.items():
        assert between.low <= report["usage"][figure] <= between.high, figure


def test_every_ticket_is_answered_in_its_row(run: Run) -> None:
    tickets = EXAMPLES / "tickets.jsonl"
    reports = run("triage.pl", "--data", str(tickets))
    assert_rows_were_predicted([report["usage"] for report in reports])
    assert [report["row"] for report in reports] == list(range(20))
    assert all(is_reply(report["result"]) for report in reports)


def assert_rows_were_predicted(usages: list[dict[str, Any]]) -> None:
    """The cached share of all rows lies in the range that `check --cost --rows` tells, though it knows no ticket."""
    estimate = estimates({"triage.pl": checked(str(EXAMPLES / "triage.pl"))}, len(usages), [])["triage.pl"]["triage"]
    requested, cached = (sum(usage[name] for usage in usages) for name in ("requested_tokens", "cached_tokens"))
    assert estimate.cached_share.low <= cached / requested <= estimate.cached_share.high
