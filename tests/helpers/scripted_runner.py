"""Runs the text of a program by a script, without a model."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from promptlang.checker.check import check
from promptlang.compiler.lower import lower
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.observer import Observer
from promptlang.runtime.backend import EVERYTHING, Capability
from promptlang.runtime.scripted import Script, ScriptedBackend
from promptlang.syntax.loader import load
from promptlang.values.conversion import bind_arguments, to_json


@dataclass
class Played:
    """What a program returned, and who answered."""

    result: Any
    backend: ScriptedBackend

    @property
    def seen(self) -> list[list[tuple[str | None, str]]]:
        """Roles and texts of the prompts, as they were when the model was asked."""
        return [[(turn.role, turn.text) for turn in prompt] for prompt in self.backend.seen]


class Player:
    """Plays program texts, each from a file of its own, as they are written: no pass takes out what nobody reads."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.backend = ScriptedBackend([])

    def __call__(
        self,
        text: str,
        script: Script,
        capabilities: frozenset[Capability] = EVERYTHING,
        tools: dict[str, Any] | None = None,
        observer: Observer | None = None,
        **arguments: Any,
    ) -> Played:
        """The first program's result; the script must be told to its end."""
        file = self._folder / "program.pl"
        file.write_text(dedent(text).strip() + "\n")
        checked = check(load(file))
        assert checked.ok, checked.diagnostics
        graphs = lower(checked)
        self.backend = ScriptedBackend(script, capabilities=capabilities)
        interpreter = Interpreter(self.backend, graphs, tools=tools or {})
        graph = next(iter(graphs.values()))
        outcome = interpreter.wait(interpreter.start(graph.name, bind_arguments(graph, arguments), observer=observer))
        self.backend.expect_end()
        return Played(to_json(outcome.result), self.backend)
