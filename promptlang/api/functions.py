"""Functions as programs: `@program`."""

import asyncio
import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from functools import partial, update_wrapper
from inspect import Parameter
from types import MethodType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from promptlang.api.any_program import AnyProgram, Execution, How, Outcome
from promptlang.api.async_hosts import TaskHost
from promptlang.api.async_program import AsyncProgram
from promptlang.api.async_prompt import AsyncPrompt
from promptlang.api.errors import UsageError
from promptlang.api.hub import current_strand
from promptlang.api.program import Program
from promptlang.api.prompt import Prompt
from promptlang.api.speech import Pending, Speech
from promptlang.api.statements import Statements
from promptlang.compiler.graph import Graph, Region
from promptlang.interpreter.interpreter import HANDLERS
from promptlang.interpreter.live import LiveRun, work
from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.observer import Watched
from promptlang.interpreter.run import Frame, Run
from promptlang.interpreter.said import Said, messages_of
from promptlang.interpreter.tasks import Task

P = ParamSpec("P")
R = TypeVar("R")
O_contra = TypeVar("O_contra", contravariant=True)
G_co = TypeVar("G_co", bound=AnyProgram[..., Any], covariant=True)


class _OfFunction(AnyProgram[P, R]):
    """What programs of functions have in common.

    Args:
        function: its first parameter is its prompt.
        how: it is run.

    Attributes:
        base: the program that this is, run otherwise; None for itself.
    """

    base: Self | None = None

    def __init__(self, function: Callable[Concatenate[Any, P], Any], how: How | None = None) -> None:
        super().__init__(_name_of(function), how or How())
        self._function = function
        self.__signature__ = _dressed(self, function)

    def _with(self, how: How) -> Self:
        other = type(self)(self._function, how)
        other.base = self.base or self
        return other

    def __reduce__(self) -> Any:
        if self.base is not None:
            return _run_otherwise, (self.base, self._how)
        name = getattr(self._function, "__qualname__", "")
        return name if _found(self._function.__module__, name) is self else (program, (self._function,))

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        return self.__signature__.bind(*args, **kwargs)


class FunctionProgram(_OfFunction[P, R], Program[P, R]):
    """A plain function as a program; it is called in a strand."""

    def _execute(self, bound: inspect.BoundArguments, execution: Execution) -> Outcome[R]:
        strand = current_strand()
        assert strand is not None
        live = _live(strand.hub.loop, execution, self.__name__)
        prompt = Prompt(Statements(live, live.frame), strand.hub)
        try:
            result = prompt._run(lambda prompt: self._function(prompt, *bound.args, **bound.kwargs))
            prompt._wait(prompt._rest())
            return _outcome(result, strand.wait(_said(live)), execution)
        finally:
            strand.prompt = None
            live.close()

    def called_by(self, caller: Speech, /, *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        bound = self.bound(args, kwargs)
        host = caller._host.for_functions
        return _called(
            caller,
            self.__name__,
            lambda statements: Prompt(statements, host),
            lambda prompt: self._function(prompt, *bound.args, **bound.kwargs),
        )


class AsyncFunctionProgram(_OfFunction[P, R], AsyncProgram[P, R]):
    """A coroutine function as a program; it runs as a task of its event loop."""

    async def _execute(self, bound: inspect.BoundArguments, execution: Execution, host: TaskHost) -> Outcome[R]:
        live = _live(host.loop, execution, self.__name__)
        prompt = AsyncPrompt(Statements(live, live.frame), host)
        try:
            result = await prompt._run(lambda prompt: self._function(prompt, *bound.args, **bound.kwargs))
            await prompt._wait(prompt._rest())
            return _outcome(result, await host.desk.wait(_said(live)), execution)
        finally:
            live.close()

    def called_by(self, caller: Speech, /, *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        bound = self.bound(args, kwargs)
        host = caller._host.for_coroutines
        assert isinstance(host, TaskHost)
        return _called(
            caller,
            self.__name__,
            lambda statements: AsyncPrompt(statements, host),
            lambda prompt: self._function(prompt, *bound.args, **bound.kwargs),
        )


class Method(Generic[O_contra, G_co]):
    """A program in a class; taken from an object, or, of a class method, from the class, it is a program of that.

    Args:
        function: its second parameter is its prompt.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function: Any = function
        update_wrapper(self, function)

    @overload
    def __get__(self: "Method[type[Any], G_co]", owner: object, kind: type[Any] | None = None, /) -> G_co: ...
    @overload
    def __get__(self, owner: None, kind: type[Any] | None = None, /) -> Self: ...
    @overload
    def __get__(self, owner: O_contra, kind: type[Any] | None = None, /) -> G_co: ...
    def __get__(self, owner: Any, kind: type[Any] | None = None, /) -> Any:
        bound = self._function.__get__(owner, kind)
        return program(bound) if isinstance(bound, MethodType) else self

    def __call__(self, owner: O_contra, /, *args: Any, **kwargs: Any) -> Any:
        """As a method is called of its class."""
        bound: Any = self.__get__(owner, type(owner))
        return bound(*args, **kwargs)


# A method can be taken for a function whose `self` is a prompt; the first that fits counts, and that is the function.
@overload
def program(function: Callable[Concatenate[AsyncPrompt, P], Awaitable[R]]) -> AsyncFunctionProgram[P, R]: ...  # type: ignore[overload-overlap]
@overload
def program(function: Callable[Concatenate[Prompt, P], R]) -> FunctionProgram[P, R]: ...  # type: ignore[overload-overlap]
@overload
def program(
    function: Callable[Concatenate[O_contra, AsyncPrompt, P], Awaitable[R]],
) -> Method[O_contra, AsyncFunctionProgram[P, R]]: ...
@overload
def program(function: Callable[Concatenate[O_contra, Prompt, P], R]) -> Method[O_contra, FunctionProgram[P, R]]: ...
def program(function: Any) -> Any:
    """Make a function a program: its first parameter is the prompt, which callers don't give.

    Args:
        function: says what the prompt holds, with plain control flow, and returns the result. Its source is not read.
            Of a method, the prompt comes behind `self`, or `cls`.

    Raises:
        UsageError: it has no parameter for the prompt there, or is a generator.
    """
    if isinstance(function, AnyProgram | Method):
        return function
    if isinstance(function, staticmethod):
        return program(function.__func__)
    if isinstance(function, classmethod) or _is_method(function):
        return Method(function)
    return AsyncFunctionProgram(function) if _is_async(function) else FunctionProgram(function)


# Runs ------------------------------------------------------------------------------------------------------


def _live(loop: EngineLoop, execution: Execution, name: str) -> LiveRun:
    run = Run(execution.seed, execution.row, execution.usage, Watched(execution.observer))
    return LiveRun(Machine(loop, {}, HANDLERS, {}), run, name)


def _said(live: LiveRun) -> Task[Said]:
    """What its prompt holds at the end."""
    return live.spawn(work(lambda: live.frame.said))


def _outcome(result: R, said: Said, execution: Execution) -> Outcome[R]:
    return Outcome(result, {}, tuple(messages_of(said.since(Said()))), execution.usage)


def _called(
    caller: Speech, name: str, make: Callable[[Statements], Speech], function: Callable[..., Any]
) -> Pending[Any]:
    """Begin a function on a prompt of its own, as a part of the caller's run."""
    live = caller._statements.live
    context = copy_context()

    async def called() -> Any:
        frame = caller._statements.frame
        label = frame.call_label(name)
        graph = Graph(name, (), {}, None, Region(()), {})
        prompt = live.machine.new_prompt(live.run, name)
        own = Frame(live.run, graph, prompt, {}, {}, (*frame.path, label), (*frame.key, label))
        result = await make(Statements(live, own))._ran(function, context)
        live.run.observer.ended(own.path)
        return result

    return Pending(live.spawn(called()), lambda value: value)


# Pickles ---------------------------------------------------------------------------------------------------


def _found(module: str, name: str) -> Any:
    """What a module has by a name, as pickles look for it."""
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _run_otherwise(base: AnyProgram[..., Any], how: How) -> AnyProgram[..., Any]:
    return base._with(how)


# Signatures ------------------------------------------------------------------------------------------------


def _dressed(program: object, function: Callable[..., Any]) -> inspect.Signature:
    """Give a program its function's name and documentation, and the signature that callers see."""
    update_wrapper(program, function)  # type: ignore[arg-type]
    vars(program).pop("__wrapped__")  # its signature has the prompt
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"{_name_of(function)} is a generator, and a program returns its result: return a list")
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind not in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD):
        raise UsageError(f"{_name_of(function)} needs a first parameter for its prompt: `p: pl.Prompt`")
    late = next((one.name for one in parameters[1:] if _is_prompt(one)), None)
    if late is not None:
        raise UsageError(f"the prompt of {_name_of(function)} is its first parameter, not {late!r}: move it")
    return signature.replace(parameters=parameters[1:])


def _is_method(function: Callable[..., Any]) -> bool:
    """Whether the prompt is the second parameter; without annotations, the first one's name tells."""
    first, second = [*inspect.signature(function).parameters.values(), None, None][:2]
    if first is None or second is None or _is_prompt(first):
        return False
    return _is_prompt(second) or first.name in ("self", "cls")


def _is_async(function: Callable[..., Any]) -> bool:
    return asyncio.iscoroutinefunction(function) or asyncio.iscoroutinefunction(type(function).__call__)


def _name_of(function: Callable[..., Any]) -> str:
    """What messages call it, and what its random numbers follow."""
    inner = function.func if isinstance(function, partial) else function
    return getattr(inner, "__name__", type(inner).__name__)


def _is_prompt(parameter: Parameter) -> bool:
    annotation = parameter.annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.rpartition(".")[2] in ("Prompt", "AsyncPrompt")
