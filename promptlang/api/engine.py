"""Engines: a model with its cache, shared by all programs, threads and event loops that use it."""

import atexit
import os
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any

from promptlang.drawing.cache import dot
from promptlang.drawing.dot import drawn
from promptlang.interpreter.loop import EngineLoop
from promptlang.runtime.usage import Usage
from promptlang.session.program import Program
from promptlang.session.runner import Runner
from promptlang.session.session import Session
from promptlang.session.settings import Settings

if TYPE_CHECKING:
    from promptlang.runtime.cache.view import CacheView


class Engine:
    """A model and its KV cache. It loads when a program first runs on it, in any thread.

    Args:
        model: `embedded`, a Hugging Face hub id, a folder with safetensors, or a `.gguf` file.
        device: where it runs: `cpu`, `cuda`, `cuda:1` ...; `auto` takes CUDA where there is some.
        dtype: how weights are kept: `float32`, `bfloat16`, `float16` or `int4`; None is `float32` on a CPU and
            `bfloat16` elsewhere.
        kv_budget: memory for the KV cache, in bytes; None measures the machine.
        seed: of all random numbers, where a program is not given one of its own.
        deterministic: never choose the layout of weights by how many sequences run, and never speculate.
        speculation: compute tokens that may come next along with what has to be computed: the same answers in fewer
            passes.
        template_options: values that the model's chat template reads, by name (`enable_thinking`).

    Raises:
        EngineError: a template option can't be set.
    """

    def __init__(
        self,
        model: str = "embedded",
        *,
        device: str = "auto",
        dtype: str | None = None,
        kv_budget: int | None = None,
        seed: int = 0,
        deterministic: bool = False,
        speculation: bool = True,
        template_options: Mapping[str, Any] | None = None,
    ) -> None:
        settings = Settings(
            model,
            device=device,
            dtype=dtype,
            kv_bytes=kv_budget,
            deterministic=deterministic,
            speculates=speculation,
            template_options=template_options or {},
        )
        self.seed = seed
        self._is_closed = False
        self._session = self._make(settings)
        _open_engines.add(self)

    def _make(self, settings: Settings) -> Session:
        return Session(settings)

    @property
    def settings(self) -> Settings:
        """Which model, and how it runs."""
        return self._session.settings

    def lead(self) -> EngineLoop:
        """The loop of its runs, led by a thread of its own; loads the model.

        Raises:
            EngineError: there is no such model, the KV budget is too small, the engine is closed, or this process was
                forked from the one that made it.
        """
        return self._session.lead()

    @property
    def usage(self) -> Usage:
        """The numbers of all runs that have ended."""
        return self._session.usage

    @property
    def is_closed(self) -> bool:
        return self._is_closed

    @property
    def cache(self) -> "CacheView":
        """What is cached now, to be looked at: `str()` is a tree of lines, and `cache_svg` a picture."""
        loop = self.lead()
        engine = self._session.open()

        def look() -> "CacheView":
            return engine.view()

        return loop.wait(loop.post(look))

    def cache_svg(self) -> str:
        """What is cached now, as an SVG document.

        Raises:
            GraphvizMissingError: there is no Graphviz here.
        """
        return drawn(dot(self.cache))

    def count(self, usage: Usage) -> None:
        """Count a run among those of the engine."""
        self._session.count(usage)

    def runner(self, program: Program, seed: int, tools: Mapping[str, Any]) -> Runner:
        """What runs a file's program; see `Session.runner`."""
        return self._session.runner(program, seed, tools)

    def close(self) -> None:
        """Let go of the model and its cache; runs that are under way are cancelled."""
        self._is_closed = True
        self._session.close()
        _open_engines.discard(self)

    def forked(self) -> None:
        """Take down that this process is a fork of the one that made the engine."""
        self._session.forked()

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


_open_engines: "weakref.WeakSet[Engine]" = weakref.WeakSet()
_changing = Lock()
_default: Engine | None = None


def default_engine() -> Engine:
    """The engine of programs that are given none: the embedded model, or what `set_default_engine` says."""
    global _default
    with _changing:
        if _default is None or _default.is_closed:
            _default = Engine()
        return _default


def set_default_engine(engine: Engine | None) -> None:
    """Say which engine programs use that are given none, in all threads; None for a new one on the embedded model."""
    global _default
    with _changing:
        _default = engine


@contextmanager
def as_default(engine: Engine) -> Iterator[None]:
    """Have programs that are given no engine use this one for a while, in all threads."""
    global _default
    with _changing:
        before, _default = _default, engine
    try:
        yield
    finally:
        with _changing:
            _default = before


def _forked() -> None:
    """A child process has the memory of its parent, and none of its threads."""
    global _changing
    _changing = Lock()
    for engine in list(_open_engines):
        engine.forked()


os.register_at_fork(after_in_child=_forked)


@atexit.register
def _close_all() -> None:
    """Threads of engines end before the interpreter does."""
    for engine in list(_open_engines):
        engine.close()
