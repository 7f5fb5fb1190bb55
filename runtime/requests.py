"""What the engine is asked, in tokens, and what it gives."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, Literal, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from promptlang.grammar.constraint import Constraint
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.usage import Usage

Finish: TypeAlias = Literal["stop", "length", "end", "done"]
"""Why an answer ended: a stop string, the token limit, an end chosen by the model, or a constraint that nothing can
follow."""


@dataclass(frozen=True)
class GenerateTokens:
    """An answer to write at the end of `prompt`, which grows by it when it is done.

    Attributes:
        prompt: flushed before submission; not to be touched until the answer is there.
        stream: the answer's own random numbers.
        usage: the run that pays.
        max_tokens: the most tokens of the answer, forced ones included; one that only writes withdrawn text anew is
            none.
        min_tokens: the answer has no fewer; a stop string that begins in them is text like any other.
        sampling: how tokens are chosen.
        stop: strings that end the answer and are no part of it.
        constraint: which texts are legal; compiled behind the `withdrawn` bytes where there are some.
        withdrawn: the text of the token taken back for token healing; the first token must extend it.
        on_text: called with each piece of text that is safe to show.
        wants_logprobs: whether the answer is to say how likely its tokens are. Without it, where a constraint allows
            few tokens, only their logits are computed.
    """

    prompt: TokenPrompt
    stream: RandomStream
    usage: Usage
    max_tokens: int
    min_tokens: int = 0
    sampling: Sampling = field(default_factory=Sampling)
    stop: tuple[str, ...] = ()
    constraint: Constraint | None = None
    withdrawn: bytes = b""
    on_text: Callable[[str], None] | None = None
    wants_logprobs: bool = False


@dataclass(frozen=True)
class GeneratedTokens:
    """A finished answer.

    Attributes:
        text: what was written, without a stop string and without withdrawn text.
        tokens: what the prompt grew by.
        logprobs: natural log-probability of each of the answer's tokens under the model (0 for a forced one), without
            those that only write withdrawn text anew; empty unless they were wanted.
        logprob: of the whole answer, a stop string's tokens included; 0 unless wanted.
        finish: why it ended.
        is_whole: whether a constrained value is complete; True without a constraint.
    """

    text: str
    tokens: list[int]
    logprobs: list[float]
    logprob: float
    finish: Finish
    is_whole: bool


@dataclass(frozen=True)
class ScoreOptions:
    """Token sequences to score at the end of `prompt`, which does not grow.

    Attributes:
        prompt: flushed before submission.
        options: the token ids of each option, none empty, no two equal.
        usage: the run that pays.
        best_only: give up an option as soon as it can't have the highest probability.
    """

    prompt: TokenPrompt
    options: tuple[tuple[int, ...], ...]
    usage: Usage
    best_only: bool = False


@dataclass(frozen=True)
class ScoredOptions:
    """`logprobs[i]` is float64 [tokens of option i], each token's natural log-probability after those before it;
    None where the option was given up."""

    logprobs: list[npt.NDArray[np.float64] | None]


Request: TypeAlias = GenerateTokens | ScoreOptions

Result = TypeVar("Result")


class RequestError(Exception):
    """A request that can't be served; `str()` says why, with the numbers."""


class PassError(RequestError):
    """What carried a request through the model failed; other requests go on."""

    @classmethod
    def of(cls, what: str, error: Exception) -> "PassError":
        """Say what failed and how, and what helps where that is known."""
        said = next(iter(str(error).splitlines()), "")
        how = f"{type(error).__name__}: {said}" if said else type(error).__name__
        is_memory = isinstance(error, MemoryError) or "memory" in said.lower()
        return cls(f"{what} failed: {how}" + ("; a smaller --kv-budget leaves more memory" if is_memory else ""))


class WatcherError(Exception):
    """A callback that watches a run failed; `str()` says how. What it watched fails with this, and nothing else."""


@contextmanager
def watching() -> Iterator[None]:
    """Raises what a callback raises inside as a `WatcherError`."""
    try:
        yield
    except WatcherError:
        raise
    except Exception as error:
        raise WatcherError(f"the observer of this run failed: {type(error).__name__}: {error}") from error


class Cancelled(Exception):
    """The answer was cancelled before it was done."""


class Paid(Protocol):
    """A request, by tokens or by texts; `usage` is the run that pays."""

    @property
    def usage(self) -> Usage: ...


class Answer(Generic[Result]):
    """A request under way: a promise of its result."""

    def __init__(self, request: Paid) -> None:
        self.request = request
        self._written = 0
        self.result: Result | None = None
        self.error: Exception | None = None
        self.on_done: Callable[[], None] | None = None
        self.on_cancel: Callable[[], None] | None = None

    @property
    def written(self) -> int:
        """Tokens of the answer so far, of one that is written token by token."""
        return self._written

    def wrote(self) -> None:
        """Another token was written."""
        self._written += 1

    @property
    def is_done(self) -> bool:
        return self.result is not None or self.error is not None

    def finish(self, result: Result) -> None:
        self.result = result
        self._tell()

    def fail(self, error: Exception) -> None:
        self.error = error
        self._tell()

    def cancel(self) -> None:
        """Drop the request, between two steps; its KV is free at once."""
        if not self.is_done and self.on_cancel is not None:
            self.on_cancel()
            self.fail(Cancelled())

    def _tell(self) -> None:
        if self.on_done is None:
            return
        try:
            with watching():
                self.on_done()
        except WatcherError as error:
            self.result, self.error = None, error
