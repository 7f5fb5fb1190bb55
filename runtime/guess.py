"""A guess at how an answer goes on, token by token."""

from collections.abc import Sequence

from promptlang.grammar.constraint import State
from promptlang.grammar.vocabulary import Mask, Vocabulary, allows
from promptlang.runtime.requests import GenerateTokens
from promptlang.runtime.sampler import SamplingRow


class Guess:
    """Tokens that may come next, each drawn as the answer's own will be: under the same constraint, and with the noise
    of its place.

    Args:
        request: what is answered.
        vocabulary: the tokens there are.
        state: where the answer stands under its constraint; the guess's own.
        written: all tokens of the prompt and of the answer.
        generated: how many of them the answer has.
        needed: tokens that still must come before the answer may end.

    Attributes:
        tokens: of the guess.
        is_over: whether the answer would end behind them.
    """

    def __init__(
        self,
        request: GenerateTokens,
        vocabulary: Vocabulary,
        state: State | None,
        written: Sequence[int],
        generated: int,
        needed: int,
    ) -> None:
        self._request = request
        self._vocabulary = vocabulary
        self._state = state
        self._written = written
        self._generated = generated
        self._needed = needed
        self.tokens: list[int] = []
        self.is_over = False

    def sampling_row(self) -> SamplingRow:
        """How the answer's next token would be chosen."""
        sampling = self._request.sampling
        looks_back = sampling.repetition_penalty != 1.0
        return SamplingRow(
            sampling,
            mask=None if self._may_end else self._legal(),
            noise=self._request.stream.bits(self._generated + len(self.tokens)),
            history=[*self._written, *self.tokens] if looks_back else (),
        )

    @property
    def _may_end(self) -> bool:
        return len(self.tokens) >= self._needed and (self._state is None or self._state.can_end())

    def _legal(self) -> Mask:
        return self._vocabulary.text_mask if self._state is None else self._state.mask()

    def take(self, token: int) -> None:
        """Go on with a token, and with what the constraint forces behind it."""
        if not allows(self._legal(), token):
            self.is_over = True
            return
        self._append(token)
        while self._state is not None and not self._state.is_done() and (forced := self._state.forced()):
            for token in forced:
                self._append(token)
        self.is_over = self._state is not None and self._state.is_done()

    def _append(self, token: int) -> None:
        self.tokens.append(token)
        if self._state is not None:
            self._state.advance(token)
