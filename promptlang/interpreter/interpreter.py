"""Runs graphs: every branch a coroutine, every model call a request to the backend."""

from collections.abc import Mapping
from contextlib import nullcontext
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
    StartNode,
    TextNode,
    ToolNode,
    TurnNode,
    UseNode,
    WhileNode,
)
from promptlang.compiler.walk import programs_from
from promptlang.interpreter.answers import run_gen, run_score, run_select
from promptlang.interpreter.beams import run_beam
from promptlang.interpreter.flow import run_for, run_if, run_jump, run_require, run_while
from promptlang.interpreter.forks import run_adopt, run_fork, run_keep
from promptlang.interpreter.host_functions import ToolFunction
from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.machine import Handler, Machine, Requires, located
from promptlang.interpreter.observer import Observer, SilentObserver, Watched
from promptlang.interpreter.programs import run_call, run_program, run_return, run_start, run_use
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
    StartNode: run_start,
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


class UnknownModelError(Exception):
    """A program that runs on a model which nobody gave; `str()` names both."""


class Interpreter:
    """Runs the programs of one bundle.

    Args:
        on: the loop of the backends, which others may share; or the one backend, for a loop of its own.
        graphs: the programs, by name.
        seed: of every run.
        tools: the functions that the programs' tools stand for, by name; `functions_of` checks that they fit.
        requires: `met` or `exhausted` to rehearse without asking the conditions of `require`.
    """

    def __init__(
        self,
        on: EngineLoop | Backend,
        graphs: Mapping[str, Graph],
        seed: int = 0,
        tools: Mapping[str, ToolFunction] = MappingProxyType({}),
        requires: Requires = "asked",
    ) -> None:
        self._loop = on if isinstance(on, EngineLoop) else EngineLoop(on)
        self._machine = Machine(self._loop, graphs, HANDLERS, tools, requires)
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
        """Begin a run, from any thread; it moves while anybody waits on the loop.

        Args:
            name: the program.
            arguments: by parameter name, already validated (`bind_arguments`).
            row: the row of data, for random numbers.
            observer: sees the run; is called by whichever thread moves the loop. What it raises fails this run alone.
            usage: takes its numbers; they are there when the run fails, too.
            more_follow: whether the program will be started again; the cache keeps what its prompts begin with.
            namespace: whose run it is (a tenant's); its prompts share nothing with those of other namespaces.

        Raises:
            UnknownModelError: the program, or one that it may call, runs on a model that was not given.
        """
        graph = self._machine.graphs[name]
        self._refuse_unknown_models(graph)
        self._loop.post(lambda: self._machine.expect(name, {name: 0} if more_follow else {}, namespace))
        run = Run(self._seed, row, usage or Usage(), Watched(observer or SilentObserver()), namespace)
        return self._loop.spawn(self._outcome(graph, dict(arguments), run))

    def cancel(self, task: Task[Any]) -> None:
        """End a run, from any thread; who waits for it gets `RunCancelled`. Its KV is free once this is done, which
        takes until the model pass under way is over."""
        self._loop.post(task.cancel)

    def wait(self, task: Task[T]) -> T:
        """Wait until a run has ended; all others on the loop go on beside it.

        Raises:
            RunError: it failed.
            RunCancelled: it was cancelled.
        """
        return self._loop.wait(task)

    def _refuse_unknown_models(self, graph: Graph) -> None:
        for called in programs_from(graph, self._machine.graphs):
            if called.on not in self._loop.backends:
                given = ", ".join(f"`{name}`" for name in self._loop.backends if name is not None) or "none by name"
                raise UnknownModelError(
                    f"{called.name} runs on the model `{called.on}`, which is not given; given: {given}"
                )

    async def _outcome(self, graph: Graph, arguments: dict[str, Any], run: Run) -> Outcome:
        machine = self._machine.running(graph)
        frame = Frame(run, graph, machine.new_prompt(run, graph.name), arguments, graph.constants)
        try:
            with located(graph.body.nodes[0], frame) if graph.body.nodes else nullcontext():
                result = await run_program(machine, frame)
                if run.observer.failure is not None:
                    raise run.observer.failure
            return Outcome(result, frame.variables, run.usage, frame.said)
        finally:
            run.release()
