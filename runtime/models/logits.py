"""What a pass says about next tokens, computed as far as it is asked for: the head is a large part of a small step."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import perf_counter
from typing import Protocol

import torch
from torch.nn.functional import linear

from promptlang.runtime.models.linear import Product


class Logits(Protocol):
    """The logits of a batch's wanted rows, on the model's device; what chooses by them brings them to the host."""

    def rows(self, rows: Sequence[int]) -> torch.Tensor:
        """All of some rows: float32 [len(rows), vocabulary]."""

    def tokens(self, row: int, tokens: torch.Tensor) -> torch.Tensor:
        """Some of one row.

        Args:
            row: which of the wanted rows.
            tokens: int64 [n].

        Returns:
            float32 [n].
        """

    def whole(self) -> torch.Tensor:
        """All of all rows: float32 [wanted rows, vocabulary]."""


class KnownLogits:
    """Logits that are there already.

    Args:
        logits: float32 [wanted rows, vocabulary].
    """

    def __init__(self, logits: torch.Tensor) -> None:
        self._logits = logits

    def rows(self, rows: Sequence[int]) -> torch.Tensor:
        """See `Logits.rows`."""
        return _picked(self._logits, rows)

    def tokens(self, row: int, tokens: torch.Tensor) -> torch.Tensor:
        """See `Logits.tokens`."""
        return self._logits[row, tokens]

    def whole(self) -> torch.Tensor:
        """See `Logits.whole`."""
        return self._logits


class HeadLogits:
    """Logits that the head has yet to give.

    Args:
        hidden: [wanted rows, hidden size], what the head reads.
        head: to [rows, vocabulary].
        weight: of the head, [vocabulary, hidden size]; None where it is not kept in this form, and a few tokens cost as
            much as all.
    """

    def __init__(self, hidden: torch.Tensor, head: Product, weight: torch.Tensor | None) -> None:
        self._hidden = hidden
        self._head = head
        self._weight = weight

    @torch.inference_mode()
    def rows(self, rows: Sequence[int]) -> torch.Tensor:
        """See `Logits.rows`."""
        return self._head(_picked(self._hidden, rows)).float()

    @torch.inference_mode()
    def tokens(self, row: int, tokens: torch.Tensor) -> torch.Tensor:
        """See `Logits.tokens`."""
        if self._weight is None:
            return self.rows([row])[0, tokens]
        return linear(self._hidden[row], self._weight[tokens]).float()

    def whole(self) -> torch.Tensor:
        """See `Logits.whole`."""
        return self.rows(range(len(self._hidden)))


def _picked(table: torch.Tensor, rows: Sequence[int]) -> torch.Tensor:
    """Some rows of a table; all of them in order without a copy."""
    return table if list(rows) == list(range(len(table))) else table[torch.tensor(rows)]


class TimedLogits:
    """Logits that count the seconds they take.

    Args:
        logits: what is asked.
    """

    def __init__(self, logits: Logits) -> None:
        self._logits = logits
        self.seconds = 0.0

    def rows(self, rows: Sequence[int]) -> torch.Tensor:
        """See `Logits.rows`."""
        with self._timed():
            return self._logits.rows(rows)

    def tokens(self, row: int, tokens: torch.Tensor) -> torch.Tensor:
        """See `Logits.tokens`."""
        with self._timed():
            return self._logits.tokens(row, tokens)

    @contextmanager
    def _timed(self) -> Iterator[None]:
        started = perf_counter()
        try:
            yield
        finally:
            self.seconds += perf_counter() - started
