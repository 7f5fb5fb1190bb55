"""What all runs of an interpreter share, and how a block of nodes runs."""

from collections.abc import Callable, Coroutine, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from promptlang.compiler.graph import Graph, Node, Region
from promptlang.grammar.errors import ConstraintError
from promptlang.interpreter.host_functions import ToolFunction
from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.run import Frame, Run, RunError
from promptlang.interpreter.tasks import Future, Interrupted
from promptlang.runtime.backend import Backend, Namespace, Prompt
from promptlang.runtime.requests import RequestError, WatcherError
from promptlang.values.expressions import EvaluationError

Handler: TypeAlias = Callable[["Machine", Any, Frame], Coroutine[Any, None, None]]
"""Runs one node on a frame."""

Requires: TypeAlias = Literal["asked", "met", "exhausted"]


@dataclass(frozen=True)
class Machine:
    """What runs nodes on one of the loop's models.

    Attributes:
        loop: runs the coroutines, the backends and the functions of tools.
        graphs: the programs, by name.
        handlers: how each kind of node runs.
        tools: the functions of tools, by name.
        requires: whether a `require` asks its condition, or for an estimate is always `met`, or `exhausted` without
            being a fault.
        on: the name of the model.
    """

    loop: EngineLoop
    graphs: Mapping[str, Graph]
    handlers: Mapping[type[Node], Handler]
    tools: Mapping[str, ToolFunction]
    requires: Requires = "asked"
    on: str | None = None

    @property
    def backend(self) -> Backend:
        """Does the model's work."""
        return self.loop.backends[self.on]

    def running(self, graph: Graph) -> "Machine":
        """The machine on the model that a program runs on."""
        return self if graph.on == self.on else replace(self, on=graph.on)

    def expect(self, reader: Hashable, next_calls: Mapping[str, int], namespace: Namespace) -> None:
        """Tell each backend which of its programs a reader will call next; see `Backend.expect`."""
        for on, backend in self.loop.backends.items():
            mine = {name: far for name, far in next_calls.items() if self.graphs[name].on == on}
            backend.expect(reader, mine, namespace)

    def is_met(self, holds: bool, left: int) -> bool:
        """Whether a `require` is content, with so many retries left."""
        if self.requires == "asked":
            return holds
        return self.requires == "met" or left == 0

    async def region(self, region: Region, frame: Frame) -> None:
        """Run the nodes of a region, one after another.

        Raises:
            RunError: a node failed.
        """
        for node in region.nodes:
            with located(node, frame):
                self.expect(frame, node.next_calls, frame.run.namespace)
                await self.settle(node.reads, frame)
                await self.handlers[type(node)](self, node, frame)
                if node.ends_prompt:
                    frame.prompt.release()

    def leave(self, frame: Frame) -> None:
        """End what was started for a frame that is at its end."""
        frame.cancel_calls()
        self.expect(frame, {}, frame.run.namespace)

    async def settle(self, names: Iterable[str], frame: Frame) -> None:
        """Wait until the named variables are known."""
        for name in sorted(names):
            value = frame.scope.get(name)
            if isinstance(value, Future):
                frame.scope[name] = await value
                if name in frame.own:
                    frame.run.observer.bound(frame.path, name, frame.scope[name])

    async def join(self, frame: Frame) -> None:
        """Wait for the calls that were started here; every fault is raised, even where nothing reads the value. Calls
        that the frame began with are for who started them."""
        await self.settle(frame.own, frame)
        for task in frame.pending:
            await task

    def new_prompt(self, run: Run, program: str) -> Prompt:
        """An empty prompt for a program; the run releases it at its end."""
        prompt = self.backend.new_prompt(run.namespace, program)
        run.prompts.append(prompt)
        return prompt


@contextmanager
def located(node: Node, frame: Frame) -> Iterator[None]:
    """Raises what goes wrong inside as a fault of this node, in this branch."""
    try:
        yield
    except EvaluationError as error:
        raise RunError(error.message, error.span, frame.path) from error
    except (RequestError, ConstraintError, WatcherError, Interrupted) as error:
        raise RunError(str(error), node.span, frame.path) from error
