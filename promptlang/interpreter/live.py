"""Live runs: their statements come one by one from outside of the loop, from a Python function or a person who types.

Each statement is a node; it runs as one of a graph does. The statements of one frame come one after another, those of
branches side by side.
"""

from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from promptlang.compiler.graph import Graph, Node, Region
from promptlang.interpreter.machine import Machine, located
from promptlang.interpreter.run import Frame, Run
from promptlang.interpreter.tasks import Future, Task

T = TypeVar("T")


class LiveRun:
    """A run that does what it is told, until `close`.

    Args:
        machine: runs its nodes.
        run: seed, usage and observer.
        name: what messages call it.

    Attributes:
        frame: its prompt. Only work that `do` or `spawn` began may touch it.
    """

    def __init__(self, machine: Machine, run: Run, name: str) -> None:
        graph = Graph(name, (), {}, None, Region(()), {})
        self.machine = machine
        self.run = run
        self.frame = Frame(run, graph, machine.new_prompt(run, name), {}, {})
        self._doing: dict[Task[Any], None] = {}
        self._closing: Future[None] = Future()
        self._task = machine.loop.spawn(self._live())

    def do(self, node: Node, frame: Frame | None = None) -> Task[Any]:
        """Run a node, from any thread.

        Args:
            node: what was read must be in the frame's scope.
            frame: of this run; None for its own.

        Returns:
            Ends with the value that the node bound, which is taken out of the frame, or None; or with its fault, a
            `RunError`; or cancelled, with the run.
        """
        return self.spawn(self.done(node, frame or self.frame))

    def spawn(self, work: Coroutine[Any, None, T]) -> Task[T]:
        """Begin something that ends with the run, from any thread; what was begun before has its turn first."""
        task = self.machine.loop.spawn(work)
        self._doing[task] = None
        task.when_done(lambda: self._doing.pop(task, None))
        return task

    def close(self) -> Task[None]:
        """End the run, from any thread, and whatever it still does; its KV is free once the task is done."""
        self.machine.loop.spawn(self._close())
        return self._task

    async def _close(self) -> None:
        if not self._closing.is_done:
            self._closing.resolve(None)

    async def done(self, node: Node, frame: Frame) -> Any:
        """As `do`, inside of the loop."""
        with located(node, frame):
            await self.machine.handlers[type(node)](self.machine, node, frame)
        value = None
        for name in node.writes:
            value = frame.scope.pop(name)
            frame.own.discard(name)
        return value

    async def _live(self) -> None:
        try:
            await self._closing
        finally:
            for task in list(self._doing):
                task.cancel()
            self.run.release()


def work(function: Callable[[], T]) -> Coroutine[Any, None, T]:
    """A function as a coroutine, for `LiveRun.spawn`."""

    async def coroutine() -> T:
        return function()

    return coroutine()
