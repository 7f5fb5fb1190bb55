"""Prompts of coroutine functions: as `Prompt`, with answers that are awaited."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Generic, Literal, ParamSpec, overload

from typing_extensions import TypeForm, TypeVar, Unpack

from promptlang.api.async_hosts import TaskHost
from promptlang.api.branching import beam, fork
from promptlang.api.calls import Callee, on_thread
from promptlang.api.errors import Cancelled, Pruned
from promptlang.api.kept import UNSET, KeptBranch
from promptlang.api.speech import Answer, Choice, Pending, Speech
from promptlang.api.statements import GenOptions, SelectOptions, Statements
from promptlang.api.strands import translated
from promptlang.api.types import answer_type
from promptlang.interpreter.live import work

T = TypeVar("T")
E = TypeVar("E", bound=Enum)
I = TypeVar("I")  # noqa: E741
R = TypeVar("R")
V = TypeVar("V", default=Any)
P = ParamSpec("P")


class AsyncPrompt(Speech):
    """A prompt that a coroutine function extends; see `Prompt`, which has the same statements."""

    def __init__(self, statements: Statements, host: TaskHost) -> None:
        super().__init__(statements, host)
        self._desk = host.desk
        self._tasks = host

    # Answers -----------------------------------------------------------------------------------------------

    @overload
    async def gen(self, /, *, logprobs: Literal[False] = False, **options: Unpack[GenOptions]) -> str: ...
    @overload
    async def gen(self, /, *, logprobs: Literal[True], **options: Unpack[GenOptions]) -> Answer[str]: ...
    @overload
    async def gen(
        self, wanted: type[T], /, *, logprobs: Literal[False] = False, **options: Unpack[GenOptions]
    ) -> T: ...
    @overload
    async def gen(self, wanted: type[T], /, *, logprobs: Literal[True], **options: Unpack[GenOptions]) -> Answer[T]: ...
    @overload
    async def gen(
        self, wanted: TypeForm[T], /, *, logprobs: Literal[False] = False, **options: Unpack[GenOptions]
    ) -> T: ...
    @overload
    async def gen(
        self, wanted: TypeForm[T], /, *, logprobs: Literal[True], **options: Unpack[GenOptions]
    ) -> Answer[T]: ...
    async def gen(self, wanted: Any = str, /, *, logprobs: bool = False, **options: Unpack[GenOptions]) -> Any:
        """As `Prompt.gen`."""
        return await self._wait(self._gen(answer_type(wanted), options, whole=logprobs))

    @overload
    async def select(
        self, options: type[E], /, *, probs: Literal[False] = False, **given: Unpack[SelectOptions]
    ) -> E: ...
    @overload
    async def select(
        self, options: type[E], /, *, probs: Literal[True], **given: Unpack[SelectOptions]
    ) -> Choice[E]: ...
    @overload
    async def select(
        self, options: Iterable[T], /, *, probs: Literal[False] = False, **given: Unpack[SelectOptions]
    ) -> T: ...
    @overload
    async def select(
        self, options: Iterable[T], /, *, probs: Literal[True], **given: Unpack[SelectOptions]
    ) -> Choice[T]: ...
    async def select(self, options: Any, /, *, probs: bool = False, **given: Unpack[SelectOptions]) -> Any:
        """As `Prompt.select`."""
        return await self._wait(self._select(options, given, whole=probs))

    async def score(self, text: str, /) -> float:
        """As `Prompt.score`."""
        return await self._wait(self._score(text))

    # Branches ----------------------------------------------------------------------------------------------

    @overload
    async def fork(
        self,
        over: Mapping[str, "Callable[[AsyncBranch], Awaitable[T]]"],
        /,
        *,
        name: str | None = None,
        or_none: bool = False,
    ) -> "dict[str, AsyncBranch[T]]": ...
    @overload
    async def fork(
        self,
        over: int,
        body: "Callable[[AsyncBranch], Awaitable[T]]",
        /,
        *,
        name: str | None = None,
        or_none: bool = False,
    ) -> "list[AsyncBranch[T]]": ...
    @overload
    async def fork(
        self,
        over: Iterable[I],
        body: "Callable[[AsyncBranch, I], Awaitable[T]]",
        /,
        *,
        name: str | None = None,
        or_none: bool = False,
    ) -> "list[AsyncBranch[T]]": ...
    async def fork(
        self, over: Any, body: Callable[..., Any] | None = None, /, *, name: str | None = None, or_none: bool = False
    ) -> Any:
        """As `Prompt.fork`, with coroutine functions."""
        return await self._wait(fork(self, self._branch, over, body, name, or_none), "forked")

    @overload
    async def beam(
        self,
        body: "Callable[[AsyncBranch], Awaitable[T]]",
        /,
        *,
        depth: int,
        width: int,
        branch: int,
        by: Callable[[T], float],
        name: str | None = None,
    ) -> "list[AsyncBranch[T]]": ...
    @overload
    async def beam(
        self,
        body: "Callable[[AsyncBranch], Awaitable[float]]",
        /,
        *,
        depth: int,
        width: int,
        branch: int,
        name: str | None = None,
    ) -> "list[AsyncBranch[float]]": ...
    async def beam(
        self,
        body: Callable[..., Any],
        /,
        *,
        depth: int,
        width: int,
        branch: int,
        by: Callable[[Any], float] | None = None,
        name: str | None = None,
    ) -> Any:
        """As `Prompt.beam`, with a coroutine function."""
        return await self._wait(beam(self, self._branch, body, (depth, width, branch), by, name), "forked")

    def adopt(self, branch: "AsyncBranch[Any]", /) -> None:
        """As `Prompt.adopt`."""
        self._adopt(branch, branch.kept)

    def _branch(self, statements: Statements) -> "AsyncBranch[Any]":
        return AsyncBranch(statements, self._tasks)

    # Functions beside it -------------------------------------------------------------------------------------

    def call(self, program: Callee[P, R], /, *args: P.args, **kwargs: P.kwargs) -> "AsyncCall[R]":
        """As `Prompt.call`; `await call.result()` waits for it."""
        pending = program.called_by(self, *args, **kwargs)
        self._calls.append(pending.task)
        return AsyncCall(self, pending)

    async def tool(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `Prompt.tool`."""
        return await self._wait(on_thread(self._ready(), function, *args, **kwargs))

    # Waiting -------------------------------------------------------------------------------------------------

    async def _run(self, function: Callable[..., Awaitable[Any]]) -> Any:
        try:
            value = await function(self)
        except BaseException:
            self._state = "ended"
            raise
        self._returned()
        return value

    async def _wait(self, pending: Pending[R], state: str = "waiting") -> R:
        self._state, before = state, self._state
        self._statements.awaited = pending.task
        fault: BaseException | None = None
        try:
            value = await self._desk.wait(pending.task)
        except asyncio.CancelledError:
            self._host.loop.spawn(work(pending.task.cancel))
            raise
        except BaseException as error:
            fault = translated(error, self._host.loop)
        finally:
            self._state = "pruned" if isinstance(fault, Pruned) else before
            self._statements.awaited = None
        for earlier in self._statements.faults():
            raise translated(earlier, self._host.loop)
        if isinstance(fault, Cancelled):
            raise asyncio.CancelledError
        if fault is not None:
            raise fault
        return pending.read(value)


class AsyncBranch(AsyncPrompt, KeptBranch[V], Generic[V]):
    """The prompt of a branch; when it is over, what came of it; see `Branch`."""

    @overload
    async def keep(self, count: int, /, *, by: float) -> None: ...
    @overload
    async def keep(self, /, *, where: object) -> None: ...
    @overload
    async def keep(self, /, *, first: int) -> None: ...
    async def keep(
        self, count: int | None = None, /, *, by: float | None = None, where: object = UNSET, first: int | None = None
    ) -> None:
        """As `Branch.keep`."""
        await self._wait(self._keep(count, by, where, first))


class AsyncCall(Generic[R]):
    """A program under way."""

    def __init__(self, caller: AsyncPrompt, pending: Pending[R]) -> None:
        self._caller = caller
        self._pending = pending

    async def result(self) -> R:
        """What it returns, once it has."""
        return await self._caller._wait(self._pending)
