"""A live prompt: typed text runs on it, and can be taken back."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from promptlang.checker.statics import Scope
from promptlang.compiler.graph import Region
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.repl.known import DECLARATIONS, Known

if TYPE_CHECKING:
    from promptlang.interpreter.live import LiveRun
    from promptlang.interpreter.loop import EngineLoop
    from promptlang.interpreter.observer import Observer
    from promptlang.interpreter.run import Checkpoint
    from promptlang.runtime.usage import Usage


@dataclass(frozen=True, eq=False)
class _State:
    """The live prompt at a moment: its counts of what was drawn, too, so that what is typed anew is drawn the same."""

    checkpoint: "Checkpoint"
    answers: int
    made: Counter[str]
    variables: Scope


@dataclass(frozen=True, eq=False)
class _Step:
    """A statement that ran, and the state on its other side."""

    text: str
    state: _State


class Conversation:
    """Runs typed text.

    Args:
        known: judges it.
        open_loop: gives the model's loop; called when a statement first needs it.
        observer: sees what runs.
        seed: of all random numbers.
    """

    def __init__(
        self, known: Known, open_loop: "Callable[[], EngineLoop]", observer: "Observer", seed: int = 0
    ) -> None:
        self.known = known
        self._open_loop = open_loop
        self._observer = observer
        self._seed = seed
        self._opened: LiveRun | None = None
        self._past: list[_Step] = []
        self._future: list[_Step] = []

    def run(self, text: str, name: str = "<repl>", line: int = 1) -> list[Diagnostic]:
        """Run a statement, or take up a declaration; where it fails or is interrupted, nothing changes.

        Returns:
            The warnings.

        Raises:
            Refused: it can't run.
            RunError: it failed.
            KeyboardInterrupt: it was stopped.
        """
        if text.startswith(DECLARATIONS):
            self.known.declare(text)
            return []
        region, after, warnings = self.known.statements(text, name, line)
        if not region.nodes:
            return warnings
        before = self._state()
        try:
            self._do(region)
        except BaseException:
            self._restore(before)
            before.checkpoint.release()
            raise
        self.known.variables = after
        self._past.append(_Step(text, before))
        for step in self._future:
            step.state.checkpoint.release()
        self._future.clear()
        return warnings

    def undo(self, count: int = 1) -> int:
        """Take statements back; gives how many there were to take back."""
        return self._move(self._past, self._future, count)

    def redo(self, count: int = 1) -> int:
        """Bring back what was taken back, nothing computed; gives how many there were."""
        return self._move(self._future, self._past, count)

    @property
    def program(self) -> str:
        """What was typed and stands, as a program that gives the same answers with the same seed."""
        texts = [step.text.rstrip("\n") for step in self._past]
        if texts and texts[0].lstrip("r").startswith(('"', "'")):
            texts.insert(0, "pass")  # a text in front would document the program
        body = "\n".join(texts) or "pass"
        lines = [f"    {line}" if line.strip() else line for line in body.split("\n")]
        name = "main" if self.known.names.kind("main") is None else "session"
        declared = self.known.declared.strip()
        return "\n".join([*([declared, "", ""] if declared else []), f"program {name}():", *lines]) + "\n"

    @property
    def variables(self) -> dict[str, object]:
        return self._live.frame.variables if self._opened else {}

    @property
    def usage(self) -> "Usage | None":
        """The numbers so far; None before the model is needed."""
        return self._opened.run.usage if self._opened else None

    @property
    def messages(self) -> list[tuple[str | None, str]]:
        """The prompt so far: roles and texts."""
        from promptlang.interpreter.said import Said, messages_of

        if self._opened is None:
            return []
        return [(said.role, said.text) for said in messages_of(self._opened.frame.said.since(Said()))]

    def close(self) -> None:
        """Let go of the prompt."""
        if self._opened is not None:
            self._opened.machine.loop.wait(self._opened.close())

    # What runs ---------------------------------------------------------------------------------------

    @property
    def _live(self) -> "LiveRun":
        if self._opened is None:
            loop = self._open_loop()
            from promptlang.interpreter.interpreter import HANDLERS
            from promptlang.interpreter.live import LiveRun
            from promptlang.interpreter.machine import Machine
            from promptlang.interpreter.observer import Watched
            from promptlang.interpreter.run import Run

            run = Run(self._seed, 0, observer=Watched(self._observer))
            self._opened = LiveRun(Machine(loop, self.known.graphs, HANDLERS, {}), run, "repl")
        return self._opened

    def _do(self, region: Region) -> None:
        live = self._live
        live.frame.constants = self.known.names.constants
        machine, loop = live.machine, live.machine.loop

        async def work() -> None:
            await machine.region(region, live.frame)
            await machine.join(live.frame)

        task = live.spawn(work())
        try:
            loop.wait(task)
        except KeyboardInterrupt:
            from promptlang.interpreter.loop import RunCancelled

            loop.post(task.cancel)
            with suppress(RunCancelled):  # as was asked
                loop.wait(task)
            raise

    # Going back --------------------------------------------------------------------------------------

    def _state(self) -> _State:
        frame = self._live.frame
        from promptlang.interpreter.run import Checkpoint

        return _State(Checkpoint(frame), frame.answers, Counter(frame.made), self.known.variables)

    def _restore(self, state: _State) -> None:
        frame = self._live.frame
        state.checkpoint.restore()
        frame.answers, frame.made = state.answers, Counter(state.made)
        self.known.variables = state.variables

    def _move(self, taken: list[_Step], given: list[_Step], count: int) -> int:
        moved = min(count, len(taken))
        for _ in range(moved):
            step = taken.pop()
            given.append(_Step(step.text, self._state()))
            self._restore(step.state)
            step.state.checkpoint.release()
        return moved
