"""What the interpreter asks of whoever answers for a model: shapes and texts go in, texts and numbers come out.

Tokens, vocabularies, caches and batches lie behind it: a model in this process (`local_backend.py`), a script
(`scripted.py`), or a server elsewhere.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal, Protocol, TypeAlias

from promptlang.grammar.shapes import Shape
from promptlang.runtime.cache.prefix_cache import Namespace as Namespace
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import Answer, Finish
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.text.markup import Part
from promptlang.runtime.usage import Usage


class Capability(Enum):
    """What a backend may be able to do beside writing text; its value is what messages call it."""

    SHAPES = "answers of a type"
    SELECT = "select"
    SCORE = "score"
    LOGPROBS = "log-probabilities"


EVERYTHING = frozenset(Capability)

Rule: TypeAlias = Literal["sum", "mean", "prior", "greedy"]
"""Which option wins; see `select.scores`."""


class ForeignPromptError(Exception):
    """A prompt of another backend: a mistake in the interpreter, not in what it runs."""

    def __init__(self, model: str) -> None:
        super().__init__(f"internal error: {model} was asked about a prompt that another backend keeps")


class Prompt(Protocol):
    """A conversation, as its backend keeps it: cheap to fork, and of use to that backend alone."""

    def open(self, role: str) -> None:
        """Begin a turn of `role`."""

    def close(self) -> None:
        """End the turn."""

    def add(self, text: str) -> None:
        """Append text that is data."""

    def fork(self) -> "Prompt":
        """Another handle on the same conversation."""

    def release(self) -> None:
        """Let go of what is kept for it; the prompt itself stays usable."""


class Pin(Protocol):
    """A beginning that the backend keeps ready."""

    def release(self) -> None:
        """Keep it no longer."""


@dataclass(frozen=True)
class PromptText:
    """A prompt as a model was asked about it, for people to read.

    Attributes:
        parts: its text and control tokens, in order; nothing is left out but what is withdrawn.
        withdrawn: what token healing took back of its end, and the answer begins by extending; else empty.
    """

    parts: tuple[Part, ...]
    withdrawn: str = ""

    @property
    def text(self) -> str:
        """All of it, in which control tokens look like text."""
        return "".join(part.text for part in self.parts)


OnPrompt: TypeAlias = Callable[[PromptText], None]


# Requests --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Generate:
    """An answer to write at the end of `prompt`, which grows by it when it is done.

    Attributes:
        prompt: not to be touched until the answer is there.
        stream: the answer's own random numbers.
        usage: the run that pays.
        max_tokens: the most tokens to generate; what heals the prompt's last word is none of them.
        min_tokens: the answer has no fewer; a stop string that begins in them is text like any other.
        shape: what may be written; None for any text.
        pretty: whether JSON is laid out for people.
        heal: whether a word that the prompt ends in may go on in the answer's first token.
        stop: strings that end the answer and are no part of it.
        sampling: how tokens are chosen.
        on_text: called with each piece of text that is safe to show.
        on_prompt: called with what the model is asked about, before it is.
        wants_logprobs: whether the answer is to say how likely it is.
    """

    prompt: Prompt
    stream: RandomStream
    usage: Usage
    max_tokens: int
    min_tokens: int = 0
    shape: Shape | None = None
    pretty: bool = False
    heal: bool = True
    stop: tuple[str, ...] = ()
    sampling: Sampling = field(default_factory=Sampling)
    on_text: Callable[[str], None] | None = None
    on_prompt: OnPrompt | None = None
    wants_logprobs: bool = False


@dataclass(frozen=True)
class Select:
    """An option to choose at the end of `prompt`, which grows by it when it is chosen.

    Attributes:
        prompt: not to be touched until the answer is there.
        options: their texts: at least one, none empty, no two equal.
        usage: the run that pays.
        rule: how options are compared.
        temperature: 0 takes the best.
        uniform: a number in [0, 1) for the draw, where there is one.
        heal: as in `Generate`.
        wants_scores: whether every option's score is read; without it, what can't win may be given up early.
        on_prompt: as in `Generate`; the only option is chosen without asking.
    """

    prompt: Prompt
    options: tuple[str, ...]
    usage: Usage
    rule: Rule = "sum"
    temperature: float = 0.0
    uniform: float = 0.0
    heal: bool = True
    wants_scores: bool = True
    on_prompt: OnPrompt | None = None


@dataclass(frozen=True)
class Score:
    """A text, not empty, whose probability at the end of `prompt` is wanted; the prompt does not grow.

    Attributes:
        usage: the run that pays.
        on_prompt: as in `Generate`.
    """

    prompt: Prompt
    text: str
    usage: Usage
    on_prompt: OnPrompt | None = None


# Results ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Generated:
    """A finished answer.

    Attributes:
        text: what was written, without a stop string.
        logprobs: natural log-probability of each token that the prompt grew by, 0 for a forced one; empty unless
            wanted.
        logprob: of the whole answer, a stop string's tokens included; None unless wanted.
        finish: why it ended.
        is_whole: whether a value of a shape is complete; True without a shape.
        tokens: how many were written; the same whatever else the model does.
        model: who wrote it.
    """

    text: str
    logprobs: tuple[float, ...]
    logprob: float | None
    finish: Finish
    is_whole: bool
    tokens: int
    model: str


@dataclass(frozen=True)
class Selected:
    """An option chosen.

    Attributes:
        index: which.
        scores: one number an option, by the rule; -inf where it was given up.
        probs: the softmax of the scores.
        logprob: natural log-probability of the option's text; None where the backend can't tell.
        tokens: of the option.
        model: who chose it.
    """

    index: int
    scores: tuple[float, ...]
    probs: tuple[float, ...]
    logprob: float | None
    tokens: int
    model: str


@dataclass(frozen=True)
class Scored:
    """The natural log-probability of a text, and the model that says so."""

    logprob: float
    model: str


class Backend(Protocol):
    """Answers for one model. Not thread-safe: one caller asks and steps.

    What is asked raises, or ends with, a `RequestError` where it can't be served and a `ConstraintError` where the
    shape can't be enforced; with a `ForeignPromptError` for a prompt of another backend.
    """

    @property
    def model(self) -> str:
        """The model's name, as users say it."""

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What may be asked of it; what it lacks must not be."""

    def new_prompt(self, namespace: Namespace = (), program: str = "") -> Prompt:
        """An empty prompt.

        Args:
            namespace: whose it is (a tenant's): prompts of different namespaces share nothing.
            program: whose prompts it is one of; those of one program tend to begin alike.
        """

    def generate(self, request: Generate) -> Answer[Generated]:
        """Take a request; its answer is filled in by later steps, or is there at once."""

    def select(self, request: Select) -> Answer[Selected]:
        """As `generate`."""

    def score(self, request: Score) -> Answer[Scored]:
        """As `generate`."""

    def pin(self, prompt: Prompt) -> Pin:
        """Keep what the prompt holds now ready until the pin is released, from when it is computed. A hint: it costs
        or saves time, and never changes a result."""

    def expect(self, reader: Hashable, next_calls: Mapping[str, int], namespace: Namespace = ()) -> None:
        """Say which programs a reader will begin next; what it said before is void. A hint, as `pin` is.

        Args:
            reader: who will.
            next_calls: by program, how many model calls from now.
            namespace: of the prompts that will begin.
        """

    def step(self) -> bool:
        """Move what was asked; returns whether anything was under way."""
