"""From a pass's logits to tokens: one for each answer, and more where a draft has guessed them."""

from collections.abc import Sequence

import torch

from promptlang.runtime.generation import GenerateJob
from promptlang.runtime.models.logits import TimedLogits
from promptlang.runtime.race import FewTokens, Values
from promptlang.runtime.sampler import SamplingRow, few_allowed, spread


class Choice:
    """The next token of an answer, to be chosen from the pass's logits.

    Args:
        job: whose.
        rows: of the logits: what is said after the last token, and after each one of a draft behind it.

    Attributes:
        job: as given.
        sampling_row: how to choose.
        few: the allowed tokens, where only their logits are needed.
    """

    sampling_row: SamplingRow
    few: FewTokens | None

    def __init__(self, job: GenerateJob, rows: range) -> None:
        self.job = job
        self._rows = rows
        self._end = job.sequence.end
        self._look()

    @property
    def rows_left(self) -> range:
        """The row to choose by, and those behind it."""
        return self._rows[self.job.sequence.end - self._end :]

    def goes_on(self) -> bool:
        """Turn to the next token, once one was taken; False where the pass says nothing of it."""
        if self.job.answer.is_done or self.job.sequence.pending:
            return False
        self._look()
        return True

    def _look(self) -> None:
        self.sampling_row = self.job.sampling_row()
        self.few = None if self.job.wants_logprobs else few_allowed(self.sampling_row)


class RowReader:
    """Reads the logits that choices need: whole rows of many in one product, a few tokens' one by one.

    Args:
        choices: all of a pass.
        logits: of it.
        vocab_size: how many there are in a row.
    """

    def __init__(self, choices: Sequence[Choice], logits: TimedLogits, vocab_size: int) -> None:
        self._logits = logits
        self._vocab_size = vocab_size
        self._known: dict[int, Values] = {}
        self._read([row for choice in choices if choice.few is None for row in choice.rows_left])

    def _read(self, rows: Sequence[int]) -> None:
        if rows:
            self._known.update(zip(rows, self._logits.rows(rows).cpu().numpy(), strict=True))

    def values(self, choice: Choice) -> Values:
        """The logits of the token that comes next, float32 [vocabulary]; those of what is not allowed may be -inf."""
        rows = choice.rows_left
        if rows[0] in self._known:
            return self._known[rows[0]]
        if choice.few is None:
            self._read(rows)
            return self._known[rows[0]]
        values = self._logits.tokens(rows[0], torch.from_numpy(choice.few)).cpu().numpy()
        return spread(choice.few, values, self._vocab_size)
