"""Branches and calls of a prompt: functions of users that run beside one another, each with a prompt of its own."""

from collections.abc import Callable, Iterable, Mapping
from contextvars import copy_context
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from promptlang.api.errors import UsageError
from promptlang.api.speech import Pending, Speech
from promptlang.api.statements import Statements
from promptlang.interpreter.branches import BranchValue
from promptlang.interpreter.run import Frame

S = TypeVar("S", bound=Speech)


@dataclass(frozen=True)
class _Plan:
    """What the branches of a fork do: a function each, and, for arms, a name each."""

    functions: tuple[Callable[..., Any], ...]
    arms: tuple[str, ...] = ()


def _planned(over: Any, body: Callable[..., Any] | None) -> _Plan:
    if isinstance(over, Mapping):
        return _Plan(tuple(over.values()), tuple(over))
    if body is None:
        raise UsageError("a fork needs the function that each branch runs; write `p.fork(3, function)`")
    if isinstance(over, int):
        return _Plan((body,) * over)
    if isinstance(over, Iterable):
        return _Plan(tuple(partial(_with_item, body, item) for item in over))
    raise UsageError(f"a fork goes over a number, items or named functions, not {type(over).__name__}")


def _itself(value: Any) -> Any:
    return value


def _with_item(body: Callable[..., Any], item: Any, branch: Speech) -> Any:
    return body(branch, item)


def _name(function: Callable[..., Any] | None, name: str | None) -> str:
    """What messages and random numbers call a fork."""
    own = getattr(function, "__name__", "fork")
    return name or ("fork" if own == "<lambda>" else own)


def fork(
    prompt: Speech,
    make: Callable[[Statements], S],
    over: Any,
    body: Callable[..., Any] | None,
    name: str | None,
    or_none: bool,
) -> Pending[Any]:
    """Branches of a prompt; its value is those that are kept, by name for arms.

    Args:
        prompt: which.
        make: the prompt of a branch.
        over: how many, the items, or the functions by name.
        body: what each branch does.
        name: of the fork.
        or_none: whether none may be kept.
    """
    plan = _planned(over, body)
    context = copy_context()
    made: dict[int, S] = {}

    async def branch(frame: Frame, index: int) -> Any:
        made[index] = one = make(Statements(prompt._statements.live, frame))
        one._index = index
        return await one._ran(plan.functions[index], context.copy())

    def read(kept: list[BranchValue]) -> Any:
        for value in kept:
            made[value.index]._end(value)
        branches = [made[value.index] for value in kept]
        return {plan.arms[value.index]: made[value.index] for value in kept} if isinstance(over, Mapping) else branches

    count = over if isinstance(over, int) else len(plan.functions)
    statements = prompt._ready()
    return Pending(statements.fork(_name(body, name), count, plan.arms, branch, or_none=or_none), read)


def beam(
    prompt: Speech,
    make: Callable[[Statements], S],
    body: Callable[..., Any],
    size: tuple[int, int, int],
    by: Callable[[Any], float] | None,
    name: str | None,
) -> Pending[list[S]]:
    """A search in rounds from a prompt; its value is the best paths, the best first.

    Args:
        prompt: where from.
        make: the prompt of a branch.
        body: what a branch of each round does.
        size: rounds, the paths that go on after each, and the ways each forks.
        by: ranks the value of a branch; None where the value is a number.
        name: of the search.
    """
    context = copy_context()
    made: dict[int, S] = {}

    async def path(frame: Frame) -> Any:
        one = make(Statements(prompt._statements.live, frame))
        one._previous = frame.scope.get("value")
        one._index = frame.branch.index if frame.branch is not None else 0
        value = await one._ran(body, context.copy())
        made[id(frame.prompt)] = one
        return value

    def read(kept: list[BranchValue]) -> list[S]:
        for value in kept:
            made[id(value.prompt)]._end(value)
        return [made[id(value.prompt)] for value in kept]

    return Pending(prompt._ready().beam(_name(body, name), *size, path, by or _itself), read)
