"""Functions as programs: `@program`."""

import inspect
from collections.abc import Callable, Mapping
from contextvars import copy_context
from functools import update_wrapper
from types import MethodType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar, overload

from promptlang.api.errors import UsageError
from promptlang.api.program import Execution, How, Outcome, Program
from promptlang.api.prompt import Prompt
from promptlang.api.speech import Pending, Speech
from promptlang.api.statements import Statements
from promptlang.compiler.graph import Graph, Region
from promptlang.interpreter.interpreter import HANDLERS
from promptlang.interpreter.live import LiveRun, work
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.observer import Watched
from promptlang.interpreter.run import Frame, Run
from promptlang.interpreter.said import Said, messages_of

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


class FunctionProgram(Program[P, R]):
    """A function whose first parameter is its prompt.

    Args:
        function: says what the prompt holds; called in a strand.
        how: it is run.
    """

    def __init__(self, function: Callable[Concatenate[Any, P], R], how: How | None = None) -> None:
        super().__init__(function.__name__, how or How())
        self._function = function
        update_wrapper(self, function)
        vars(self).pop("__wrapped__")  # its signature has the prompt
        self.__signature__ = _without_prompt(function)

    def _with(self, how: How) -> Self:
        return type(self)(self._function, how)

    def _bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> inspect.BoundArguments:
        return self.__signature__.bind(*args, **kwargs)

    def _execute(self, bound: inspect.BoundArguments, execution: Execution) -> Outcome[R]:
        strand = execution.strand
        run = Run(execution.seed, execution.row, execution.usage, Watched(execution.observer))
        live = LiveRun(Machine(strand.hub.loop, {}, HANDLERS, {}), run, self.__name__)
        prompt = Prompt(Statements(live, live.frame), strand.hub)
        try:
            result = prompt._run(lambda prompt: self._function(prompt, *bound.args, **bound.kwargs))
            strand.wait(live.spawn(prompt._settled()))
            said = strand.wait(live.spawn(work(lambda: live.frame.said)))
            return Outcome(result, {}, tuple(messages_of(said.since(Said()))), execution.usage)
        finally:
            strand.prompt = None
            live.close()

    def called_by(self, caller: Speech, /, *args: P.args, **kwargs: P.kwargs) -> Pending[R]:
        bound = self._bound(args, kwargs)
        live = caller._statements.live
        context = copy_context()

        async def called() -> R:
            frame = caller._statements.frame
            label = frame.call_label(self.__name__)
            graph = Graph(self.__name__, (), {}, None, Region(()), {})
            prompt = live.machine.new_prompt(live.run, self.__name__)
            own = Frame(live.run, graph, prompt, {}, {}, (*frame.path, label), (*frame.key, label))
            speech = caller._beside(Statements(live, own))
            result: R = await speech._ran(lambda prompt: self._function(prompt, *bound.args, **bound.kwargs), context)
            live.run.observer.ended(own.path)
            return result

        return Pending(live.spawn(called()), lambda value: value)

    @overload
    def __get__(self, owner: None, kind: type[Any]) -> Self: ...
    @overload
    def __get__(self, owner: object, kind: type[Any]) -> "FunctionProgram[P, R]": ...
    def __get__(self, owner: object | None, kind: type[Any] | None = None) -> Any:
        """As a method, its `self` is the object's."""
        return self if owner is None else type(self)(MethodType(self._function, owner), self._how)


def program(function: Callable[Concatenate[Prompt, P], R]) -> FunctionProgram[P, R]:
    """Make a function a program: its first parameter is the prompt, which callers don't give.

    Args:
        function: says what the prompt holds, with plain control flow, and returns the result.

    Raises:
        UsageError: it has no parameter for the prompt.
    """
    return FunctionProgram(function)


def _without_prompt(function: Callable[..., Any]) -> inspect.Signature:
    """The signature that callers see."""
    signature = inspect.signature(function)
    prompt = next((one for one in signature.parameters.values() if _is_prompt(one)), None)
    first = prompt or next(iter(signature.parameters.values()), None)
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        raise UsageError(f"{function.__name__} needs a first parameter for its prompt: `p: pl.Prompt`")
    kept = [one for one in signature.parameters.values() if one is not first]
    return signature.replace(parameters=kept)


def _is_prompt(parameter: inspect.Parameter) -> bool:
    annotation = parameter.annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return name.rpartition(".")[2] in ("Prompt", "AsyncPrompt")
