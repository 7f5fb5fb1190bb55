"""An engine for rehearsals: the real one, with a model that only guesses. Importing this loads torch."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from promptlang.grammar.vocabulary import Mask
from promptlang.runtime.cache.kv_cache import KvCache
from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.generation import GenerateJob
from promptlang.runtime.models.batch import Batch
from promptlang.runtime.models.loading import LoadedModel
from promptlang.runtime.models.logits import KnownLogits, Logits
from promptlang.runtime.models.shape import ModelShape
from promptlang.runtime.requests import Answer, GenerateTokens, Request, ScoredOptions, ScoreOptions
from promptlang.runtime.scheduler import Job
from promptlang.runtime.scoring import Logprobs, OptionNode, ScoreJob, walk
from promptlang.runtime.text.tokenizer import Tokenizer

LONGEST_CONTEXT = 1 << 16

ALWAYS, NEVER = 1.0, 0.0
"""The haste of a model that ends its answers as soon as it may, and of one that never does."""


@dataclass(frozen=True)
class Manner:
    """How a model guesses.

    Attributes:
        haste: how often an answer, a text or a list ends where it may, from 0 to 1.
        seed: of the answers.
        is_certain: whether all draws from one prompt are the same.
        is_spelt: whether it writes byte by byte, and numbers that are 1, 10, 100: the most tokens for their size.
    """

    haste: float
    seed: int
    is_certain: bool = False
    is_spelt: bool = False


class GuessingEngine(Engine):
    """Does all that an engine does, but for the arithmetic.

    Args:
        tokenizer: of the model.
        manner: how the model guesses.
        tokens: room in the cache.
    """

    def __init__(self, tokenizer: Tokenizer, manner: Manner, tokens: int) -> None:
        model = GuessingModel(tokenizer, manner)
        super().__init__(LoadedModel(model, tokenizer, "guess"), EngineOptions(kv_bytes=tokens * model.kv_bytes))
        self._haste = manner.haste

    def job(self, answer: Answer[Any], request: Request) -> Job:
        if isinstance(request, GenerateTokens):
            return GuessedJob(answer, request, self.cache, self.vocabulary)
        if isinstance(request, ScoreOptions) and self._haste in (ALWAYS, NEVER):
            return SettledJob(answer, request, self.cache, is_short=self._haste == ALWAYS)
        return super().job(answer, request)


class GuessedJob(GenerateJob):
    """An answer that ends where its model says so: a guess that can't extend the value is no vote to end it."""

    def _mask(self) -> Mask | None:
        mask = super()._mask()
        if not self._may_end_anywhere or self._state is None:
            return mask
        return self._state.mask() | self._vocabulary.mask(self._vocabulary.eos_ids)


class SettledJob(ScoreJob):
    """Options of which it is settled who wins: the shortest, and what can't win is given up at once; or the longest,
    and nothing is given up."""

    def __init__(self, answer: Answer[ScoredOptions], request: ScoreOptions, cache: KvCache, is_short: bool) -> None:
        super().__init__(answer, request, cache)
        self._is_short = is_short
        self._winner = (min if is_short else max)(
            range(len(self.options)), key=lambda option: len(self.options[option])
        )

    def can_win(self, node: OptionNode) -> bool:
        return not self._is_short or any(below.option == self._winner for below in walk(node))

    def logprobs(self) -> list[Logprobs | None]:
        return [self._settled(option) for option in self.options]

    def _settled(self, option: tuple[int, ...]) -> Logprobs:
        """Certain as far as an option goes with the winner, next to impossible from there on."""
        winner = self.options[self._winner]
        with_winner = [option[: at + 1] == winner[: at + 1] for at in range(len(option))]
        return np.where(with_winner, 0.0, _IMPOSSIBLE)


_IMPOSSIBLE = -50.0
"""The log-probability of a token that is not the winner's."""


class GuessingModel:
    """Answers at random.

    What it says next depends on the last token and its position, so that equal prompts get equal answers.

    Args:
        tokenizer: whose tokens.
        manner: how it guesses.
    """

    weights = "guesses"
    drafting = None

    def __init__(self, tokenizer: Tokenizer, manner: Manner) -> None:
        size = tokenizer.vocab_size
        self.shape = ModelShape(
            layers=1, heads=1, kv_heads=1, head_size=1, vocab_size=size, max_positions=LONGEST_CONTEXT
        )
        self.dtype = torch.float32
        self.device = torch.device("cpu")
        self.kv_bytes = KvPool.bytes_per_token(self.shape, self.dtype)
        self._logits = torch.rand(_MOODS, size, generator=torch.Generator().manual_seed(manner.seed))
        hasty = round(manner.haste * _MOODS)
        self._logits[:hasty] += _to_the_end(tokenizer)
        self._logits[hasty:] += _onwards(tokenizer, manner.is_spelt)
        if manner.is_certain:
            self._logits *= _CERTAIN
        self._favourites = _favourites(tokenizer) if manner.is_spelt else None

    def forward(self, batch: Batch, pool: KvPool) -> Logits:
        """See `Model.forward`; reads and writes no keys and values."""
        tokens, positions = batch.tokens[batch.rows], batch.positions[batch.rows]
        logits = self._logits[(31 * tokens + positions) % _MOODS]
        if self._favourites is not None:
            logits[torch.arange(len(logits)), self._favourites[tokens]] += _FAVOURITE
        return KnownLogits(logits)


_MOODS = 17
"""Different rows of logits."""

_ENDS = 1000.0
_DIGIT = 200.0
_WORD = 100.0
_BYTE = 50.0
_FAVOURITE = 100.0
_CERTAIN = 1000.0
_CLOSES = (b'"', b"}", b"]", b'"}', b'"]')


def _to_the_end(tokenizer: Tokenizer) -> torch.Tensor:
    """What a model says that wants to end: float32 [vocabulary], added to its logits. Where nothing ends, it takes the
    longest token."""
    leaning = torch.tensor([float(len(text)) for text in tokenizer.token_bytes])
    leaning[[token for token, text in enumerate(tokenizer.token_bytes) if text in _CLOSES]] = _DIGIT
    leaning[list(tokenizer.eos_ids)] = _ENDS
    return leaning


def _onwards(tokenizer: Tokenizer, is_spelt: bool) -> torch.Tensor:
    """What a model says that wants to go on: digits and words, or letters where it spells, and what closes nothing.
    Digits make numbers long, and none of these is likely to be a stop string."""
    leaning = torch.zeros(tokenizer.vocab_size)
    texts = list(enumerate(tokenizer.token_bytes))
    leaning[[token for token, text in texts if re.search(rb'["}\]]', text)]] = -_WORD
    leaning[[token for token, text in texts if re.fullmatch(rb" ?[a-z]+", text)]] = _WORD
    if is_spelt:
        leaning[[token for token, text in texts if len(text) == 1 and text not in _CLOSES]] += _BYTE
    leaning[[token for token, text in texts if re.fullmatch(rb"[0-9]", text)]] = _DIGIT
    leaning[list(tokenizer.eos_ids)] = -_ENDS
    return leaning


def _favourites(tokenizer: Tokenizer) -> torch.Tensor:
    """What makes numbers round: int64 [vocabulary], `0` behind each token that is a digit, `1` behind all others."""
    one, zero = (tokenizer.encode(digit)[-1] for digit in "10")
    return torch.tensor([zero if text.isdigit() else one for text in tokenizer.token_bytes])
