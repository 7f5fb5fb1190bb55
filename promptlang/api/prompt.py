"""Prompts of plain functions: whoever asks for an answer waits for it, in a strand of a hub."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from typing import Any, Generic, Literal, ParamSpec, overload

from typing_extensions import TypeForm, TypeVar, Unpack

from promptlang.api.branching import beam, fork
from promptlang.api.calls import Callee, on_thread
from promptlang.api.errors import Cancelled, Pruned, UsageError
from promptlang.api.hub import Strand, current_strand
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


class Prompt(Speech):
    """A prompt that a function extends, statement by statement.

    Text and turns (`text`, `system`, `user`, `assistant`, `role`), answers (`gen`, `select`, `score`), branches
    (`fork`, `beam`, `adopt`), calls of programs (`call`), and `attempts`, `pin`, `log`, `tool`. All that can fail
    raises a `RunError` where the run fails, and a `UsageError` where the statement can't stand.
    """

    _strand: Strand[Any] | None = None

    # Answers -----------------------------------------------------------------------------------------------

    @overload
    def gen(self, /, *, logprobs: Literal[False] = False, **options: Unpack[GenOptions]) -> str: ...
    @overload
    def gen(self, /, *, logprobs: Literal[True], **options: Unpack[GenOptions]) -> Answer[str]: ...
    @overload
    def gen(self, wanted: type[T], /, *, logprobs: Literal[False] = False, **options: Unpack[GenOptions]) -> T: ...
    @overload
    def gen(self, wanted: type[T], /, *, logprobs: Literal[True], **options: Unpack[GenOptions]) -> Answer[T]: ...
    @overload
    def gen(self, wanted: TypeForm[T], /, *, logprobs: Literal[False] = False, **options: Unpack[GenOptions]) -> T: ...
    @overload
    def gen(self, wanted: TypeForm[T], /, *, logprobs: Literal[True], **options: Unpack[GenOptions]) -> Answer[T]: ...
    def gen(self, wanted: Any = str, /, *, logprobs: bool = False, **options: Unpack[GenOptions]) -> Any:
        """An answer of the model, which the prompt grows by.

        Args:
            wanted: its type: a class, or any annotation, as `Literal["a", "b"]` or `Annotated[int, Range(1, 5)]`.
            logprobs: whether to tell how likely its tokens are; the result is an `Answer` then.
            options: as the language's.

        Raises:
            TypeError: no answer can be of this type.
            RunError: the answer is not whole, or can't be had.
        """
        return self._wait(self._gen(answer_type(wanted), options, whole=logprobs))

    @overload
    def select(self, options: type[E], /, *, probs: Literal[False] = False, **given: Unpack[SelectOptions]) -> E: ...
    @overload
    def select(self, options: type[E], /, *, probs: Literal[True], **given: Unpack[SelectOptions]) -> Choice[E]: ...
    @overload
    def select(
        self, options: Iterable[T], /, *, probs: Literal[False] = False, **given: Unpack[SelectOptions]
    ) -> T: ...
    @overload
    def select(self, options: Iterable[T], /, *, probs: Literal[True], **given: Unpack[SelectOptions]) -> Choice[T]: ...
    def select(self, options: Any, /, *, probs: bool = False, **given: Unpack[SelectOptions]) -> Any:
        """The likeliest of some options, which the prompt grows by.

        Args:
            options: texts or numbers, or an enum.
            probs: whether to tell how likely each option is; the result is a `Choice` then.
            given: as the language's.
        """
        return self._wait(self._select(options, given, whole=probs))

    def score(self, text: str, /) -> float:
        """Natural log-probability of a text here; the prompt does not grow."""
        return self._wait(self._score(text))

    # Branches ----------------------------------------------------------------------------------------------

    @overload
    def fork(
        self, over: Mapping[str, "Callable[[Branch], T]"], /, *, name: str | None = None, or_none: bool = False
    ) -> "dict[str, Branch[T]]": ...
    @overload
    def fork(
        self, over: int, body: "Callable[[Branch], T]", /, *, name: str | None = None, or_none: bool = False
    ) -> "list[Branch[T]]": ...
    @overload
    def fork(
        self, over: Iterable[I], body: "Callable[[Branch, I], T]", /, *, name: str | None = None, or_none: bool = False
    ) -> "list[Branch[T]]": ...
    def fork(
        self, over: Any, body: Callable[..., Any] | None = None, /, *, name: str | None = None, or_none: bool = False
    ) -> Any:
        """Run branches from here, side by side; afterwards this prompt is what it was before.

        Args:
            over: how many; or items, one a branch; or a function a branch, by name.
            body: what each branch does, given its prompt and its item.
            name: what messages call it, and what its random numbers follow; the function's by default.
            or_none: whether `keep` may leave none.

        Returns:
            The branches that are kept, in order; with what `body` returned in `.value`.

        Raises:
            Exception: what a branch raised; its siblings are cancelled.
        """
        return self._wait(fork(self, self._branch, over, body, name, or_none), "forked")

    @overload
    def beam(
        self,
        body: "Callable[[Branch], T]",
        /,
        *,
        depth: int,
        width: int,
        branch: int,
        by: Callable[[T], float],
        name: str | None = None,
    ) -> "list[Branch[T]]": ...
    @overload
    def beam(
        self, body: "Callable[[Branch], float]", /, *, depth: int, width: int, branch: int, name: str | None = None
    ) -> "list[Branch[float]]": ...
    def beam(
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
        """Search in rounds: each path forks, `body` runs in each branch, the best of all go on.

        Args:
            body: what a branch does in a round; `branch.previous` is what it returned in the round before.
            depth: rounds.
            width: the paths that go on after each.
            branch: the ways each path forks.
            by: ranks what `body` returned; by default that is the rank itself.
            name: as a fork's.

        Returns:
            The best paths, the best first.
        """
        return self._wait(beam(self, self._branch, body, (depth, width, branch), by, name), "forked")

    def adopt(self, branch: "Branch[Any]", /) -> None:
        """Go on from a branch that was kept: this prompt becomes what the branch's is."""
        self._adopt(branch, branch.kept)

    def _branch(self, statements: Statements) -> "Branch[Any]":
        return Branch(statements, self._host)

    # Functions beside it -------------------------------------------------------------------------------------

    def call(self, program: Callee[P, R], /, *args: P.args, **kwargs: P.kwargs) -> "Call[R]":
        """Begin a program on a prompt of its own; it runs beside what follows, until `.result()` waits for it."""
        pending = program.called_by(self, *args, **kwargs)
        self._calls.append(pending.task)
        return Call(self, pending)

    def tool(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in a thread of its own, so that other branches go on while it takes its time."""
        return self._wait(on_thread(self._ready(), function, *args, **kwargs))

    # Waiting -------------------------------------------------------------------------------------------------

    def _run(self, function: Callable[..., R]) -> R:
        self._strand = current_strand()
        assert self._strand is not None
        self._strand.prompt = self
        try:
            value = function(self)
        except BaseException:
            self._state = "ended"
            raise
        self._returned()
        return value

    def _wait(self, pending: Pending[R], state: str = "waiting") -> R:
        """Wait for a statement.

        Raises:
            UsageError: this is not the function that the prompt was given to.
        """
        strand = self._strand
        if strand is None or strand is not current_strand():
            raise UsageError("a prompt belongs to the function that it was given to; use it there")
        self._state, before = state, self._state
        self._statements.awaited = pending.task
        fault: BaseException | None = None
        try:
            value = strand.wait(pending.task)
        except Cancelled:
            self._host.loop.spawn(work(pending.task.cancel))
            raise
        except BaseException as error:
            fault = translated(error, self._host.loop)
        finally:
            self._state = "pruned" if isinstance(fault, Pruned) else before
            self._statements.awaited = None
        for earlier in self._statements.faults():
            raise translated(earlier, self._host.loop)
        if fault is not None:
            raise fault
        return pending.read(value)


class Branch(Prompt, KeptBranch[V], Generic[V]):
    """The prompt of a branch; when it is over, what came of it (`value`, `index`, `said`, `logprob`)."""

    @overload
    def keep(self, count: int, /, *, by: float) -> None: ...
    @overload
    def keep(self, /, *, where: object) -> None: ...
    @overload
    def keep(self, /, *, first: int) -> None: ...
    def keep(
        self, count: int | None = None, /, *, by: float | None = None, where: object = UNSET, first: int | None = None
    ) -> None:
        """Prune the branches of the fork: `keep(2, by=score)` waits for the siblings and keeps the best,
        `keep(where=condition)` ends this one unless it holds, `keep(first=2)` keeps the first to arrive.

        A branch that is not kept ends here: `Pruned` is thrown, which is no `Exception`, and `finally` runs.
        """
        self._wait(self._keep(count, by, where, first))


class Call(Generic[R]):
    """A program under way."""

    def __init__(self, caller: Prompt, pending: Pending[R]) -> None:
        self._caller = caller
        self._pending = pending

    def result(self) -> R:
        """What it returns; waits until it has."""
        return self._caller._wait(self._pending)
