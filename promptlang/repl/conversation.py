"""A live prompt: typed text runs on it, and can be taken back."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from promptlang.checker.statics import Scope
from promptlang.compiler.graph import GenNode, Region
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.repl.known import DECLARATIONS, Known, Refused
from promptlang.syntax.ast import Expression

if TYPE_CHECKING:
    from promptlang.interpreter.live import LiveRun
    from promptlang.interpreter.loop import EngineLoop
    from promptlang.interpreter.machine import Machine
    from promptlang.interpreter.observer import Observer
    from promptlang.interpreter.run import Checkpoint, Frame
    from promptlang.runtime.backend import Backend, Prompt
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
    """A statement that ran, and the state on its other side.

    Attributes:
        seed: that it ran with.
        began: what its last `gen` on the live prompt was asked.
    """

    text: str
    state: _State
    seed: int
    began: "Began | None"


@dataclass(frozen=True, eq=False)
class Began:
    """A `gen` as it began: the prompt then, and what was asked for."""

    prompt: "Prompt"
    node: GenNode


class Conversation:
    """Runs typed text.

    Args:
        known: judges it.
        open_loop: gives the model's loop; called when a statement first needs it.
        observer: sees what runs.
        seed: of all random numbers.

    Attributes:
        seed: of the random numbers of what runs next.
    """

    def __init__(
        self, known: Known, open_loop: "Callable[[], EngineLoop]", observer: "Observer", seed: int = 0
    ) -> None:
        self.known = known
        self._open_loop = open_loop
        self._observer = observer
        self.seed = seed
        self._began: Began | None = None
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
        return self._run(text, name, line, self.seed)

    def _run(self, text: str, name: str, line: int, seed: int) -> list[Diagnostic]:
        region, after, warnings = self.known.statements(text, name, line)
        if not region.nodes:
            return warnings
        before = self._state()
        try:
            self._do(region, seed)
        except BaseException:
            self._restore(before)
            before.checkpoint.release()
            raise
        self.known.variables = after
        self._past.append(_Step(text, before, seed, self._began))
        for step in self._future:
            step.state.checkpoint.release()
        self._future.clear()
        return warnings

    def anew(self, text: str | None = None, seed: int | None = None) -> list[Diagnostic]:
        """Run something in place of the last statement; where it fails, that stands as it was.

        Args:
            text: by default the statement itself.
            seed: by default the one that it ran with.

        Returns, raises:
            As `run`.
        """
        last = self._last
        self.undo()
        try:
            return self._run(text or last.text, "<repl>", 1, last.seed if seed is None else seed)
        except BaseException:
            self.redo()
            raise

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
        lines = [f"    {line}" if line.strip() else "" for line in body.split("\n")]
        name = "main" if self.known.names.kind("main") is None else "session"
        declared = self.known.declared.strip()
        return "\n".join([*([declared, "", ""] if declared else []), f"program {name}():", *lines]) + "\n"

    @property
    def seeds(self) -> list[int]:
        """The seeds that the statements ran with, each once."""
        return list(dict.fromkeys(step.seed for step in self._past)) or [self.seed]

    @property
    def last(self) -> str:
        """The last statement.

        Raises:
            Refused: there is none.
        """
        return self._last.text

    @property
    def last_seed(self) -> int:
        """The seed that it ran with."""
        return self._last.seed

    @property
    def last_began(self) -> Began:
        """Its last `gen`, as it began.

        Raises:
            Refused: it has none.
        """
        began = self._last.began
        if began is None:
            raise Refused("error: the last statement asked for no answer of `gen` on this prompt")
        return began

    @property
    def _last(self) -> _Step:
        if not self._past:
            raise Refused("error: no statement has run yet")
        return self._past[-1]

    @property
    def prompt(self) -> "Prompt":
        """The live prompt, to be forked."""
        return self._live.frame.prompt

    @property
    def backend(self) -> "Backend":
        """Of the model, which is waited for."""
        return self._live.machine.backend

    def value_of(self, expression: Expression) -> object:
        """An expression's value with the variables as they are."""
        return self._live.frame.value(expression)

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

            handlers = {**HANDLERS, GenNode: self._gen}
            run = Run(self.seed, 0, observer=Watched(self._observer))
            self._opened = LiveRun(Machine(loop, self.known.graphs, handlers, {}), run, "repl")
        return self._opened

    async def _gen(self, machine: "Machine", node: GenNode, frame: "Frame") -> None:
        """A `gen`, which is noted where it is the live prompt's own."""
        from promptlang.interpreter.answers import run_gen

        if self._opened is not None and frame is self._opened.frame:
            self._began = Began(frame.prompt.fork(), node)
            self._began.prompt.release()  # the frame's own holds its KV
        await run_gen(machine, node, frame)

    def _do(self, region: Region, seed: int) -> None:
        live = self._live
        live.frame.constants = self.known.names.constants
        live.run.seed, self._began = seed, None
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
            given.append(replace(step, state=self._state()))
            self._restore(step.state)
            step.state.checkpoint.release()
        return moved
