"""promptlang: a small language for prompt programs, and the engine that runs them fast.

    import promptlang as pl

    triage = pl.load("triage.pl")
    triage(ticket="My bill is wrong")

What stands here is the door for Python (`promptlang/api/`), loaded when it is first used.

May import: api, notebooks.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from promptlang.api import events as events
    from promptlang.api import partial as partial
    from promptlang.api import testing as testing
    from promptlang.api.any_program import Outcome as Outcome
    from promptlang.api.async_program import AsyncProgram as AsyncProgram
    from promptlang.api.async_prompt import AsyncBranch as AsyncBranch
    from promptlang.api.async_prompt import AsyncPrompt as AsyncPrompt
    from promptlang.api.async_stream import AsyncStream as AsyncStream
    from promptlang.api.engine import Engine as Engine
    from promptlang.api.engine import default_engine as default_engine
    from promptlang.api.engine import set_default_engine as set_default_engine
    from promptlang.api.errors import AnnotationError as AnnotationError
    from promptlang.api.errors import ArgumentsError as ArgumentsError
    from promptlang.api.errors import Cancelled as Cancelled
    from promptlang.api.errors import ChoiceError as ChoiceError
    from promptlang.api.errors import EngineError as EngineError
    from promptlang.api.errors import LoadError as LoadError
    from promptlang.api.errors import MarkError as MarkError
    from promptlang.api.errors import OptionsError as OptionsError
    from promptlang.api.errors import ProgramError as ProgramError
    from promptlang.api.errors import Pruned as Pruned
    from promptlang.api.errors import RunError as RunError
    from promptlang.api.errors import Timeout as Timeout
    from promptlang.api.errors import UsageError as UsageError
    from promptlang.api.files import compile as compile
    from promptlang.api.files import load as load
    from promptlang.api.files import load_all as load_all
    from promptlang.api.functions import program as program
    from promptlang.api.marks import Grammar as Grammar
    from promptlang.api.marks import Length as Length
    from promptlang.api.marks import MaxLength as MaxLength
    from promptlang.api.marks import Pattern as Pattern
    from promptlang.api.marks import Range as Range
    from promptlang.api.marks import Schema as Schema
    from promptlang.api.program import Program as Program
    from promptlang.api.prompt import Branch as Branch
    from promptlang.api.prompt import Call as Call
    from promptlang.api.prompt import Prompt as Prompt
    from promptlang.api.records import Record as Record
    from promptlang.api.speech import Answer as Answer
    from promptlang.api.speech import Choice as Choice
    from promptlang.api.stream import Stream as Stream
    from promptlang.notebooks import cells as notebook  # noqa: F401 - users say `pl.notebook`

__version__ = "0.1.0"

_MODULES = {
    "any_program": ("Outcome",),
    "async_program": ("AsyncProgram",),
    "async_prompt": ("AsyncBranch", "AsyncPrompt"),
    "engine": ("Engine", "default_engine", "set_default_engine"),
    "errors": (
        "AnnotationError",
        "ArgumentsError",
        "Cancelled",
        "ChoiceError",
        "EngineError",
        "LoadError",
        "MarkError",
        "OptionsError",
        "ProgramError",
        "Pruned",
        "RunError",
        "Timeout",
        "UsageError",
    ),
    "files": ("compile", "load", "load_all"),
    "functions": ("program",),
    "marks": ("Grammar", "Length", "MaxLength", "Pattern", "Range", "Schema"),
    "program": ("Program",),
    "prompt": ("Branch", "Call", "Prompt"),
    "records": ("Record",),
    "speech": ("Answer", "Choice"),
    "stream": ("Stream",),
    "async_stream": ("AsyncStream",),
}
"""The names that users say, by the module of `promptlang.api` that each is in."""

_WHOLE = ("events", "partial", "testing")
"""Modules of `promptlang.api` that users say by their own name."""

_HOMES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    value: Any
    if name == "notebook":
        value = import_module("promptlang.notebooks.cells")
    elif name in _WHOLE:
        value = import_module(f"promptlang.api.{name}")
    elif name in _HOMES:
        value = getattr(import_module(f"promptlang.api.{_HOMES[name]}"), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext promptlang`, for notebooks."""
    import_module("promptlang.notebooks.cells").load_ipython_extension(shell)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_WHOLE])
