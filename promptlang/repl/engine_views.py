"""What the engine holds, and what the model would say, for people to read. Importing this loads torch."""

from dataclasses import dataclass

import numpy as np

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.shapes import Shape, Str
from promptlang.grammar.vocabulary import Mask, Vocabulary, allows
from promptlang.repl.known import Refused
from promptlang.runtime.backend import Backend, Prompt
from promptlang.runtime.cache.drawing import draw
from promptlang.runtime.engine import Engine
from promptlang.runtime.healing import heal
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GenerateTokens, RequestError
from promptlang.runtime.text.chat_template import TemplateError
from promptlang.runtime.text.length import LongTextError
from promptlang.runtime.usage import Usage


@dataclass(frozen=True)
class Token:
    """A token of a prompt: its id, its text, and whether its KV is there."""

    id: int
    text: str
    is_cached: bool


@dataclass(frozen=True)
class Alternative:
    """How an answer might have begun: the text, as the prompt would grow by it, and how likely the model says it is."""

    text: str
    probability: float


def engine_of(backend: Backend) -> Engine:
    """The engine of a backend.

    Raises:
        Refused: it has none on this machine.
    """
    if not isinstance(backend, LocalBackend):
        raise Refused(f"error: {backend.model} does not run in this process; its tokens can't be seen")
    return backend.engine


def model_of(engine: Engine) -> str:
    """What runs, and how much room it has."""
    shape = engine.model.shape
    return (
        f"{engine.name} on {engine.model.device}, {str(engine.model.dtype).removeprefix('torch.')}: "
        f"{shape.vocab_size} tokens in its vocabulary, KV for {engine.pool.size}, at most {engine.room.limit} a prompt"
    )


def tree_of(engine: Engine, width: int) -> str:
    """The radix tree, a line an edge."""
    return draw(engine.tree, lambda tokens: _spelled(engine, tokens.tolist()), width)


def tokens_of(engine: Engine, prompt: Prompt) -> list[Token]:
    """The tokens of a prompt, as a model would be asked on it."""
    flushed = _flushed(engine, prompt)
    tokens = flushed.flush()
    cached = engine.tree.peek(np.array(tokens, np.int32), flushed.namespace) if engine.cache.shares else 0
    return [Token(token, _spelled(engine, [token]), at < cached) for at, token in enumerate(tokens)]


def _flushed(engine: Engine, prompt: Prompt) -> TokenPrompt:
    """A prompt whose text is tokenised, and which holds no KV."""
    fork = prompt.fork()
    assert isinstance(fork, TokenPrompt)
    fork.release()
    try:
        if not fork.flush():
            fork.extend([engine.start_token])
    except TemplateError as error:
        raise Refused(f"error: {error}") from error
    except LongTextError as error:
        raise Refused(f"error: {error}, and at most {engine.room.limit} fit") from error
    return fork


def _spelled(engine: Engine, tokens: list[int]) -> str:
    """Tokens on one line: text in quotes, control tokens as they are."""
    parts = engine.tokenizer.parts(tokens)
    return " ".join(part.text if part.kind == "control" else repr(part.text) for part in parts)


# Alternatives --------------------------------------------------------------------------------------------


def alternatives(backend: Backend, prompt: Prompt, shape: Shape | None, heals: bool, count: int) -> list[Alternative]:
    """The likeliest first tokens of an answer, the likeliest first; fewer where no more may begin it.

    Args:
        backend: whose model is asked; nothing else runs on it.
        prompt: where the answer begins.
        shape: what may be written; None for any text.
        heals: whether its last word may go on.
        count: how many.
    """
    engine = engine_of(backend)
    fork = _flushed(engine, prompt)
    head = heal(fork, engine.vocabulary) if heals else b""
    return _likeliest_of(engine, fork, _allowed(engine.vocabulary, shape, head), count, head)


@dataclass(frozen=True)
class Place:
    """What might have stood at one place of an answer.

    Attributes:
        step: which token of the answer; 1 is the first.
        steps: how many there are.
        text: what the answer has there; empty where it ends.
        allowed_count: how many tokens the type allowed.
        may_end: whether it let the answer end.
        allowed, refused: the likeliest tokens that it allowed, and that it did not, the likeliest first.
    """

    step: int
    steps: int
    text: str
    allowed_count: int
    may_end: bool
    allowed: list[Alternative]
    refused: list[Alternative]


def place_of(backend: Backend, before: Prompt, after: Prompt, shape: Shape, step: int | None, count: int) -> Place:
    """What a type allowed at one place of an answer.

    Args:
        backend: whose model is asked; nothing else runs on it.
        before: where the answer begins.
        after: a prompt that goes on from its end.
        shape: what was to be written.
        step: which token; None for the last.
        count: how many tokens to show of those that were allowed, and of those that weren't.

    Raises:
        Refused: the answer has fewer tokens.
    """
    engine = engine_of(backend)
    prompt = _flushed(engine, before)
    start = len(prompt.flush())
    state = compile_constraint(shape, engine.vocabulary).start()
    taken: list[int] = []
    for token in _flushed(engine, after).flush()[start:]:
        if state.is_done() or not allows(state.mask(), token):
            break
        state.advance(token)
        taken.append(token)
    step = len(taken) if step is None else step
    if not 1 <= step <= len(taken):
        raise Refused(f"error: the answer has {len(taken)} tokens; give 1 to {len(taken)}")
    state.rollback(len(taken) - step + 1)
    prompt.extend(taken[: step - 1])
    allowed = state.mask()
    return Place(
        step,
        len(taken),
        engine.vocabulary.token_bytes[taken[step - 1]].decode(errors="replace"),
        int(np.bitwise_count(allowed.view(np.uint32)).sum()),
        state.can_end(),
        _likeliest_of(engine, prompt, allowed, count),
        _likeliest_of(engine, prompt, engine.vocabulary.text_mask & ~allowed, count),
    )


def _likeliest_of(
    engine: Engine, prompt: TokenPrompt, tokens: Mask, count: int, head: bytes = b""
) -> list[Alternative]:
    """The likeliest of some tokens at a prompt's end, as texts behind what was withdrawn."""
    left, found = tokens.copy(), list[Alternative]()
    while len(found) < count and left.any():
        token, logprob = _likeliest(engine, prompt.fork(), left)
        left &= ~engine.vocabulary.mask([token])
        text = engine.vocabulary.token_bytes[token][len(head) :].decode(errors="replace")
        found.append(Alternative(text, float(np.exp(logprob))))
    return found


def _allowed(vocabulary: Vocabulary, shape: Shape | None, head: bytes) -> Mask:
    """The tokens that an answer of a shape may begin with, behind what was withdrawn."""
    extending = vocabulary.extending(head) if head else vocabulary.text_mask.copy()
    if shape in (None, Str()):
        return extending
    assert shape is not None
    legal = compile_constraint(shape, vocabulary, prefix=head.decode()).start().mask()
    return extending & legal if (extending & legal).any() else legal


def _likeliest(engine: Engine, prompt: TokenPrompt, allowed: Mask) -> tuple[int, float]:
    """The likeliest of some tokens at a prompt's end, and the natural logarithm of its probability."""
    only = _OneOf(engine.vocabulary, allowed)
    asked = GenerateTokens(
        prompt, RandomStream(0), Usage(), max_tokens=1, min_tokens=1, constraint=only, wants_logprobs=True
    )
    try:
        answer = engine.submit(asked)
        try:
            while not answer.is_done:
                engine.step()
        finally:
            answer.cancel()
            prompt.release()
        if answer.error is not None:
            raise answer.error
    except RequestError as error:
        raise Refused(f"error: {error}") from error
    assert answer.result is not None
    assert only.taken is not None
    return only.taken, answer.result.logprob


class _OneOf:
    """A constraint, and its only state: one of some tokens, then anything.

    Attributes:
        taken: which it was.
    """

    def __init__(self, vocabulary: Vocabulary, allowed: Mask) -> None:
        self.vocabulary = vocabulary
        self.taken: int | None = None
        self._allowed = allowed

    def start(self) -> "_OneOf":
        return self

    def mask(self) -> Mask:
        return self._allowed.copy()

    def forced(self) -> list[int]:
        return []

    def can_end(self) -> bool:
        return self.taken is not None

    def is_done(self) -> bool:
        return self.taken is not None

    def advance(self, token: int) -> None:
        self.taken = token if self.taken is None else self.taken

    def rollback(self, count: int) -> None:
        self.taken = None

    def fork(self) -> "_OneOf":
        return _OneOf(self.vocabulary, self._allowed)
