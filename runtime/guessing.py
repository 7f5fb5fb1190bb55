"""Answers written ahead by a model that is nearly the right one, and faster.

Where the two agree closely enough, the tokens do (self-speculative decoding, Zhang et al., arXiv:2309.08168; with a
copy of the weights in four bits, Tiwari et al., "QuantSpec", arXiv:2502.10424).
"""

from collections.abc import Sequence
from time import perf_counter
from typing import Any

from promptlang.kernels.backend import AttentionBackend
from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.generation import GenerateJob
from promptlang.runtime.models.batch import build_batch
from promptlang.runtime.models.model import Model
from promptlang.runtime.sampler import sample


class Guesser:
    """Writes ahead.

    Args:
        model: see `Model.drafting`.
        pool: the keys and values of the answers. Those of what is written ahead lie in slots that are reserved for
            drafts, until the right model's take their place.
        attention: computes it.

    Attributes:
        seconds: that the model has taken so far.
    """

    def __init__(self, model: Model, pool: KvPool, attention: AttentionBackend[Any]) -> None:
        self._model = model
        self._pool = pool
        self._attention = attention
        self.seconds = 0.0

    def write(self, answers: Sequence[tuple[GenerateJob, Lane]], passes: int) -> list[list[int]]:
        """Guess at the next tokens of some answers: one a pass, and what their constraints force behind it.

        Args:
            answers: with the lanes that reach their ends, and slots reserved for drafts.
            passes: of the model, at most.

        Returns:
            Tokens for each, no more than there are slots for.
        """
        written = [_Ahead(job, lane) for job, lane in answers]
        for _ in range(passes):
            going = [ahead for ahead in written if not ahead.is_over]
            if not going:
                break
            batch = build_batch([ahead.lane for ahead in going], self._attention, self._model.shape.windows)
            started = perf_counter()
            logits = self._model.forward(batch, self._pool).rows(range(len(going))).cpu().numpy()
            self.seconds += perf_counter() - started
            for ahead, values in zip(going, logits, strict=True):
                ahead.take(sample(values, ahead.guess.sampling_row()))
        return [ahead.guess.tokens[: ahead.room] for ahead in written]


class _Ahead:
    """What is written ahead of one answer.

    Args:
        job: whose.
        lane: up to its end.

    Attributes:
        guess: the tokens.
        lane: what the model has to read next.
        room: slots there are for them.
    """

    def __init__(self, job: GenerateJob, lane: Lane) -> None:
        self._sequence = job.sequence
        self.guess = job.guess()
        self.lane = lane
        self.room = job.sequence.draft_room

    @property
    def is_over(self) -> bool:
        """Whether nothing more can be guessed."""
        return self.guess.is_over or len(self.guess.tokens) >= self.room

    def take(self, token: int) -> None:
        """Go on with a token."""
        read = len(self.guess.tokens)
        self.guess.take(token)
        if not self.is_over:
            self.lane = self._sequence.lane_ahead(self.guess.tokens[read:], read)
