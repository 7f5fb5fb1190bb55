"""A session: programs on one model. Importing this loads no model library; opening the session does."""

from collections.abc import Callable, Mapping
from threading import RLock, Thread
from time import perf_counter
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any

from promptlang.compiler.passes.ahead import options_ahead, shapes_ahead
from promptlang.interpreter.tasks import Future
from promptlang.runtime.usage import Usage
from promptlang.session.ahead import compile_ahead
from promptlang.session.program import Program
from promptlang.session.runner import Runner
from promptlang.session.settings import OpeningError, Settings
from promptlang.session.template_options import unread

if TYPE_CHECKING:
    from promptlang.interpreter.loop import EngineLoop
    from promptlang.runtime.engine import Engine


class Session:
    """Owns a model, its engine and its loop. All programs it runs share them, and what is cached.

    Any thread may open it, start runs and wait for them: whoever waits moves everything, or, after `lead`, a thread of
    the session's own does.

    Args:
        settings: which model, and how its engine runs.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self._opened: tuple[Engine, EngineLoop] | None = None
        self._leader: _Leader | None = None
        self._changing = RLock()
        self._is_forked = False
        self._is_closed = False

    def open(self, progress: Callable[[str], None] | None = None, ahead: Program | None = None) -> "Engine":
        """Load the model, unless it is loaded.

        Args:
            progress: told in a few words what takes long.
            ahead: a program whose constraints and options are compiled beside the loading.

        Returns:
            The engine.

        Raises:
            OpeningError: there is no such model, the KV budget is too small, or the program runs on other models too.
        """
        return self._open(progress, ahead)[0]

    def _open(self, progress: Callable[[str], None] | None, ahead: Program | None) -> "tuple[Engine, EngineLoop]":
        if self._is_closed:
            raise OpeningError("this session is closed")
        if self._is_forked:
            raise OpeningError(
                "this process was forked from one whose model was loaded, and what runs it does not survive that; load "
                "it in the process that uses it, or start processes with `spawn`"
            )
        if ahead is not None and ahead.models:
            named = ", ".join(f"`{name}`" for name in ahead.models)
            raise OpeningError(
                f"{ahead.name} runs on the model {named} by name, and this session has one model, unnamed"
            )
        with self._changing:
            if self._opened is None:
                started = perf_counter()
                self._opened = self._load(progress, ahead)
                self._opened[0].usage.load_seconds = perf_counter() - started
            return self._opened

    def lead(self) -> "EngineLoop":
        """The loop, led by a thread of the session's own from now on, until it is closed; opens the session.

        Raises:
            OpeningError: as `open` raises it.
        """
        _, loop = self._open(None, None)
        with self._changing:
            if self._leader is None:
                self._leader = _Leader(loop)
        return loop

    def _load(self, progress: Callable[[str], None] | None, ahead: Program | None) -> "tuple[Engine, EngineLoop]":
        graphs = (ahead.graph, ahead.graphs) if ahead is not None else None
        compiling = compile_ahead(
            shapes_ahead(*graphs) if graphs else (), options_ahead(*graphs) if graphs else (), self.settings.model
        )
        from promptlang.session.opening import open_loop

        opened = open_loop(self.settings, progress)
        compiling.join()
        return opened

    def runner(self, program: Program, seed: int = 0, tools: Mapping[str, Any] = MappingProxyType({})) -> Runner:
        """What runs a program here; opens the session, where it is not open.

        Args:
            program: which.
            seed: of all its random numbers.
            tools: functions by name; those of the program's tools must be among them.

        Raises:
            ToolError: a tool's function is missing or does not fit.
            OpeningError: as `open` raises it.
        """
        functions = program.functions(tools)
        _, loop = self._open(None, program)
        from promptlang.interpreter.interpreter import Interpreter

        return Runner(program, Interpreter(loop, program.graphs, seed, functions), loop, self.count)

    def count(self, usage: Usage) -> None:
        """Count a run among those of the session."""
        with self._changing:
            self.usage.add_tokens(usage)

    @property
    def usage(self) -> Usage:
        """The numbers of all runs that were waited for."""
        return self.open().usage

    @property
    def weights(self) -> str:
        """What the model's weights are kept in."""
        return self.open().model.weights

    @property
    def unread_options(self) -> tuple[str, ...]:
        """A sentence on each of the settings' template options that the model's chat template never reads."""
        options = self.settings.template_options
        return tuple(unread(options, self.open().tokenizer.template_names, self.settings.model)) if options else ()

    def forked(self) -> None:
        """Take down that this process is a fork of the one that made the session: its threads are not here."""
        self._changing = RLock()
        self._is_forked = self._opened is not None
        self._opened = self._leader = None

    def close(self) -> None:
        """End all runs, and let go of the model; its memory is free when the session's runners are gone, too."""
        self._is_closed = True
        if self._opened is not None:
            self._opened[1].close()
        if self._leader is not None:
            self._leader.stop()
        self._opened = self._leader = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


class _Leader:
    """A thread that leads a loop.

    Args:
        loop: which.
    """

    def __init__(self, loop: "EngineLoop") -> None:
        self._loop = loop
        self._end: Future[None] = Future()
        self._thread = Thread(target=loop.serve, args=(self._end,), daemon=True, name="promptlang-engine")
        self._thread.start()

    def stop(self) -> None:
        """End it, when the model pass under way is over."""
        self._end.resolve(None)
        self._loop.threads.wake()
        self._thread.join()
