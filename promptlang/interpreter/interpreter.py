"""Runs graphs: every branch a coroutine, every model call a request to the backend."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from promptlang.compiler.graph import (
    AdoptNode,
    BeamNode,
    CallNode,
    ForkNode,
    ForNode,
    GenNode,
    Graph,
    IfNode,
    JumpNode,
    KeepNode,
    LetNode,
    LogNode,
    Node,
    PinNode,
    RequireNode,
    ReturnNode,
    ScoreNode,
    SelectNode,
    TextNode,
    ToolNode,
    TurnNode,
    UseNode,
    WhileNode,
)
from promptlang.interpreter.answers import run_gen, run_score, run_select
from promptlang.interpreter.beams import run_beam
from promptlang.interpreter.flow import run_for, run_if, run_jump, run_require, run_while
from promptlang.interpreter.forks import run_adopt, run_fork, run_keep
from promptlang.interpreter.host_functions import ToolFunction
from promptlang.interpreter.machine import Handler, Machine, Requires
from promptlang.interpreter.observer import Observer, SilentObserver
from promptlang.interpreter.programs import run_call, run_program, run_return, run_use
from promptlang.interpreter.prompts import run_pin, run_text, run_turn
from promptlang.interpreter.run import Frame, Outcome, Run
from promptlang.interpreter.tasks import Task
from promptlang.interpreter.tools import run_tool
from promptlang.interpreter.values import run_let, run_log
from promptlang.runtime.backend import Backend, Namespace
from promptlang.runtime.usage import Usage
from promptlang.values.values import Value

T = TypeVar("T")

HANDLERS: Mapping[type[Node], Handler] = {
    TextNode: run_text,
    TurnNode: run_turn,
    GenNode: run_gen,
    SelectNode: run_select,
    ScoreNode: run_score,
    LetNode: run_let,
    CallNode: run_call,
    ToolNode: run_tool,
    UseNode: run_use,
    IfNode: run_if,
    ForNode: run_for,
    WhileNode: run_while,
    JumpNode: run_jump,
    ForkNode: run_fork,
    BeamNode: run_beam,
    KeepNode: run_keep,
    AdoptNode: run_adopt,
    PinNode: run_pin,
    RequireNode: run_require,
    LogNode: run_log,
    ReturnNode: run_return,
}
"""How each kind of node runs."""


class Interpreter:
    """Runs the programs of one bundle on one backend.

    Args:
        backend: does the model's work.
        graphs: the programs, by name.
        seed: of every run.
        tools: the functions that the programs' tools stand for, by name; `functions_of` checks that they fit.
        requires: `met` or `exhausted` to rehearse without asking the conditions of `require`.
    """

    def __init__(
        self,
        backend: Backend,
        graphs: Mapping[str, Graph],
        seed: int = 0,
        tools: Mapping[str, ToolFunction] = MappingProxyType({}),
        requires: Requires = "asked",
    ) -> None:
        self._machine = Machine(backend, graphs, HANDLERS, tools, requires)
        self._seed = seed

    def start(
        self,
        name: str,
        arguments: Mapping[str, Value],
        row: int = 0,
        observer: Observer | None = None,
        usage: Usage | None = None,
        more_follow: bool = False,
        namespace: Namespace = (),
    ) -> Task[Outcome]:
        """Begin a run; it moves when `wait` steps the backend.

        Args:
            name: the program.
            arguments: by parameter name, already validated (`bind_arguments`).
            row: the row of data, for random numbers.
            observer: sees the run.
            usage: takes its numbers; they are there when the run fails, too.
            more_follow: whether the program will be started again; the cache keeps what its prompts begin with.
            namespace: whose run it is (a tenant's); its prompts share nothing with those of other namespaces.
        """
        self._machine.backend.expect(name, {name: 0} if more_follow else {}, namespace)
        run = Run(self._seed, row, usage or Usage(), observer or SilentObserver(), namespace)
        return self._machine.loop.spawn(self._outcome(self._machine.graphs[name], dict(arguments), run))

    def wait(self, task: Task[T]) -> T:
        """Step the backend until the task is done; other tasks go on beside it."""
        return self._machine.loop.run(task, self._machine.step)

    async def _outcome(self, graph: Graph, arguments: dict[str, Any], run: Run) -> Outcome:
        frame = Frame(run, graph, self._machine.new_prompt(run, graph.name), arguments, graph.constants)
        try:
            result = await run_program(self._machine, frame)
            return Outcome(result, frame.variables, run.usage)
        finally:
            for prompt in run.prompts:
                prompt.release()
            for _, pin in run.pins:
                pin.release()
