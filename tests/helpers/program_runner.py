"""Runs the text of a program on the tiny random model."""

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tiny_engine import tiny_engine

from promptlang.checker.check import check
from promptlang.compiler.graph import Graph
from promptlang.compiler.lower import lower
from promptlang.diagnostics.source import Source
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.observer import Observer
from promptlang.interpreter.run import Outcome, RunError
from promptlang.runtime.engine import Engine
from promptlang.runtime.local_backend import LocalBackend
from promptlang.syntax.loader import load, load_source
from promptlang.values.conversion import bind_arguments, to_json


def graphs_of(text: str) -> dict[str, Graph]:
    """The graphs of a program text, before the passes."""
    checked = check(load_source(Source(dedent(text).strip() + "\n", "program.pl")))
    assert checked.ok, checked.diagnostics
    return lower(checked)


class Runner:
    """Runs program texts, each from a file of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def interpreter(self, text: str, engine: Engine | None = None, seed: int = 0) -> Interpreter:
        file = self._folder / "program.pl"
        file.write_text(dedent(text).strip() + "\n")
        checked = check(load(file))
        assert checked.ok, checked.diagnostics
        self.diagnostics = checked.diagnostics
        self.graphs = lower(checked)
        self.engine = engine or tiny_engine()
        return Interpreter(LocalBackend(self.engine), self.graphs, seed)

    def outcome(
        self, text: str, engine: Engine | None = None, seed: int = 0, observer: Observer | None = None, **arguments: Any
    ) -> Outcome:
        interpreter = self.interpreter(text, engine, seed)
        graph = next(iter(self.graphs.values()))
        outcome = interpreter.wait(interpreter.start(graph.name, bind_arguments(graph, arguments), observer=observer))
        self.engine.check()
        return outcome

    def __call__(self, text: str, engine: Engine | None = None, seed: int = 0, **arguments: Any) -> Any:
        return to_json(self.outcome(text, engine, seed, **arguments).result)


def fault(run: Runner, text: str, **arguments: Any) -> RunError:
    with pytest.raises(RunError) as caught:
        run(text, **arguments)
    run.engine.check()
    return caught.value
