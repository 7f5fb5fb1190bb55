"""What a run of a program means, whichever passes it went through: to compare runs with each other and with the
oracle."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from naive_interpreter import Failed, Fault, NaiveInterpreter
from tiny_engine import tiny_engine

from promptlang.checker.check import check
from promptlang.checker.tables import Checked
from promptlang.compiler.graph import Graph
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.optimise import optimise
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.observer import SilentObserver
from promptlang.interpreter.run import RunError
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.usage import Usage
from promptlang.syntax.loader import load
from promptlang.values.conversion import bind_arguments, to_json

TOKENS = 16_384


@dataclass
class Meaning:
    """A run.

    Attributes:
        result, variables: as JSON data; the names of variables keep their order.
        logs: by branch, in order.
        faults: the one that was reported; of the oracle, all that may be.
        usage: what it took; of the oracle, calls and generated tokens alone.
    """

    result: Any = None
    variables: Any = None
    logs: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    faults: set[Fault] = field(default_factory=set)
    usage: Usage = field(default_factory=Usage)


COSTS = ("calls", "generated_tokens", "option_tokens")
SHARED_COSTS = ("computed_tokens", "forwards")
"""What may grow a little where answers meet that did not before: one waits for the beginning that it shares."""


def differences(run: Meaning, plain: Meaning, oracle: Meaning, *, drops: bool = False) -> list[str]:
    """In what a run after some passes differs from the one without.

    Args:
        run: after passes.
        plain: without.
        oracle: what the oracle says; of several faults, any that it knows may be the one to be reported.
        drops: whether a pass may have dropped what nothing reads, which then is no variable, and of a fork has no
            branches.
    """
    if run.faults or plain.faults:
        is_same = run.faults <= oracle.faults and bool(run.faults) == bool(plain.faults)
        return [] if is_same else [f"faults: {plain.faults} became {run.faults}"]
    found = [] if _ordered(run.result) == _ordered(plain.result) else ["result"]
    found += [] if run.logs == plain.logs else ["logs"]
    left = {name: value for name, value in plain.variables.items() if name in run.variables or not drops}
    if list(left) != list(run.variables):
        found.append(f"variables: {list(left)} became {list(run.variables)}")
    if not drops and _ordered(left) != _ordered(run.variables):
        found.append("values of variables")
    for name in (*COSTS, *SHARED_COSTS):
        before, after = getattr(plain.usage, name), getattr(run.usage, name)
        if after > (before if name in COSTS else 2 + 1.05 * before):
            found.append(f"{name}: {before} became {after}")
    return found


def _ordered(value: Any) -> str:
    """As text, for dicts are equal whatever the order of their keys."""
    return repr(value)


@dataclass
class _Logs(SilentObserver):
    said: dict[tuple[str, ...], list[str]] = field(default_factory=dict)

    def log(self, path: tuple[str, ...], text: str) -> None:
        self.said.setdefault(path, []).append(text)


def graphs_of(text: str, folder: Path) -> dict[str, Graph]:
    """The graphs of a program's text; it has no errors."""
    checked = checked_text(text, folder)
    assert checked.ok, checked.diagnostics
    return lower(checked)


def checked_text(text: str, folder: Path) -> Checked:
    """What the checker says of a program's text."""
    file = folder / "program.pl"
    file.write_text(text)
    return check(load(file))


def meaning_of(graphs: dict[str, Graph], passes: Sequence[str], **arguments: Any) -> Meaning:
    """What the first program does on the tiny model, after some passes."""
    optimised = optimise(graphs, passes).graphs
    graph = next(iter(optimised.values()))
    logs, run = _Logs(), Meaning()
    engine = tiny_engine(TOKENS)
    interpreter = Interpreter(LocalBackend(engine), optimised)
    task = interpreter.start(graph.name, bind_arguments(graph, arguments), observer=logs, usage=run.usage)
    try:
        outcome = interpreter.wait(task)
        run.result, run.variables = to_json(outcome.result), to_json(outcome.variables)
    except RunError as error:
        run.faults = {Fault(error.message, error.span.position.line, error.path)}
    engine.check()
    run.logs = logs.said
    return run


def plain_meaning_of(graphs: dict[str, Graph], **arguments: Any) -> Meaning:
    """What the oracle says that the first program does."""
    graph = next(iter(graphs.values()))
    oracle = NaiveInterpreter(tiny_engine(TOKENS, shares=False, answers_at_once=1), graphs)
    try:
        told = oracle.run(graph.name, bind_arguments(graph, arguments))
    except Failed as failed:
        return Meaning(faults=failed.faults)
    usage = Usage(calls=told.calls, generated_tokens=told.generated)
    return Meaning(told.result, told.variables, told.logs, usage=usage)
