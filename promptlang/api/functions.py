"""Functions as programs: `@program`."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from contextvars import copy_context
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, ParamSpec, Protocol, Self, TypeVar, overload

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
OwnerT = TypeVar("OwnerT")


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
        super().__init__(function.__name__, how or How())
        self._function = function
        self.__signature__ = _dressed(self, function)

    def _with(self, how: How) -> Self:
        other = type(self)(self._function, how)
        other.base = self.base or self
        return other

    def __reduce__(self) -> Any:
        return _pickled(self.base, self._function, self._how)

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        return self.__signature__.bind(*args, **kwargs)

    def __get__(self, owner: object | None, kind: type[Any] | None = None) -> Self:
        """As a method, its `self` is the object's."""
        return self if owner is None else type(self)(MethodType(self._function, owner), self._how)


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


class Method(Protocol[OwnerT, P, R]):
    """What type checkers see of a program in a class: of an object, it is a program without `self`."""

    @overload
    def __get__(self, owner: None, kind: type[OwnerT]) -> "Method[OwnerT, P, R]": ...
    @overload
    def __get__(self, owner: OwnerT, kind: type[OwnerT] | None = None) -> FunctionProgram[P, R]: ...


class AsyncMethod(Protocol[OwnerT, P, R]):
    """As `Method`, of a coroutine function."""

    @overload
    def __get__(self, owner: None, kind: type[OwnerT]) -> "AsyncMethod[OwnerT, P, R]": ...
    @overload
    def __get__(self, owner: OwnerT, kind: type[OwnerT] | None = None) -> AsyncFunctionProgram[P, R]: ...


# The first parameter that is a prompt decides; a type checker sees that two of these may fit one function.
@overload
def program(  # type: ignore[overload-overlap]
    function: Callable[Concatenate[AsyncPrompt, P], Awaitable[R]],
) -> AsyncFunctionProgram[P, R]: ...
@overload
def program(  # type: ignore[overload-overlap]
    function: Callable[Concatenate[Prompt, P], R],
) -> FunctionProgram[P, R]: ...
@overload
def program(function: Callable[Concatenate[OwnerT, AsyncPrompt, P], Awaitable[R]]) -> AsyncMethod[OwnerT, P, R]: ...
@overload
def program(function: Callable[Concatenate[OwnerT, Prompt, P], R]) -> Method[OwnerT, P, R]: ...
def program(function: Callable[..., Any]) -> Any:
    """Make a function a program: its first parameter is the prompt, which callers don't give.

    Args:
        function: says what the prompt holds, with plain control flow, and returns the result. Its source is not read.

    Raises:
        UsageError: it has no parameter for the prompt.
    """
    return AsyncFunctionProgram(function) if asyncio.iscoroutinefunction(function) else FunctionProgram(function)


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


def _pickled(base: AnyProgram[..., Any] | None, function: Callable[..., Any], how: How) -> Any:
    """A program by the name that its module gives it, as functions are pickled."""
    return function.__qualname__ if base is None else (_unpickled, (base, how))


def _unpickled(program: AnyProgram[..., Any], how: How) -> AnyProgram[..., Any]:
    return program._with(how)


# Signatures ------------------------------------------------------------------------------------------------


def _dressed(program: object, function: Callable[..., Any]) -> inspect.Signature:
    """Give a program its function's name and documentation, and the signature that callers see."""
    update_wrapper(program, function)  # type: ignore[arg-type]
    vars(program).pop("__wrapped__")  # its signature has the prompt
    signature = inspect.signature(function)
    prompt = next((one for one in signature.parameters.values() if _is_prompt(one)), None)
    first = prompt or next(iter(signature.parameters.values()), None)
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        raise UsageError(f"{function.__name__} needs a first parameter for its prompt: `p: pl.Prompt`")
    return signature.replace(parameters=[one for one in signature.parameters.values() if one is not first])


def _is_prompt(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.rpartition(".")[2] in ("Prompt", "AsyncPrompt")
