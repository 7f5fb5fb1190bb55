"""Constraints under which some arrays hold no value twice, over those of another engine.

A token that would end an item that is there already is barred, and so is one after which no other item could be written
(see `json_reader.py`). In an array of strings a mask over 49,152 tokens took 1.5 ms, elsewhere what the other engine
takes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from promptlang.grammar.constraint import Constraint, State
from promptlang.grammar.engines.json_reader import Place, Reader, Repeated
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.vocabulary import Mask, Vocabulary

NO_OTHER = 'every item that may stand in an array with "uniqueItems" is there already, and another one must come'


@dataclass(frozen=True)
class Suspects:
    """Tokens that may end an item, by where they come: each is tried before it is let through.

    Attributes:
        outside: of the arrays in question.
        in_string: in a string in one.
        elsewhere: in one.
    """

    outside: Mask
    in_string: Mask
    elsewhere: Mask


@lru_cache(8)
def suspects_of(vocabulary: Vocabulary) -> Suspects:
    """The tokens of a vocabulary that are tried."""

    def found(pattern: bytes) -> Mask:
        expression = re.compile(pattern, re.DOTALL)
        return vocabulary.mask(
            [token for text, tokens in vocabulary.by_bytes.items() if expression.search(text) for token in tokens]
        )

    return Suspects(found(rb"\[.*,"), found(rb'".*[,\]}]'), found(rb"[,\]}]|^ ."))


@dataclass(frozen=True)
class UniqueConstraint:
    """Another constraint's answers, where no array in question holds a value twice.

    Attributes:
        inner: the other constraint, of JSON.
        place: of the whole value.
        prefix: how many bytes of an answer come before the value.
    """

    inner: Constraint
    place: Place
    prefix: int

    def start(self) -> "UniqueState":
        return UniqueState(self.inner.start(), History(Reader(self.place), self.prefix))


@dataclass(frozen=True)
class History:
    """What has been read, and what had before the last token.

    Attributes:
        prefix: how many bytes are still to come before the value.
    """

    reader: Reader
    prefix: int
    last: "History | None" = None

    def after(self, token: bytes, before: State | None) -> "History":
        behind = token[self.prefix :]
        return History(
            self.reader.after(behind, before if behind == token else None), max(0, self.prefix - len(token)), self
        )


class UniqueState:
    """A running answer: the other engine's state, and what has been read."""

    def __init__(self, inner: State, history: History) -> None:
        self._inner = inner
        self._history = history

    @property
    def vocabulary(self) -> Vocabulary:
        """Whose tokens."""
        return self._inner.vocabulary

    def mask(self) -> Mask:
        mask = self._inner.mask() & ~self.vocabulary.extending(*self._history.reader.barred())
        tried = self.vocabulary.tokens_of(mask & self._suspects())
        mask &= ~self.vocabulary.mask([token for token in tried if self._read(token) is None])
        if not mask.any() and not self.can_end():
            raise ConstraintError(NO_OTHER)
        return mask

    def _suspects(self) -> Mask:
        reader, suspects = self._history.reader, suspects_of(self.vocabulary)
        if not any(frame.is_unique for frame in reader.frames):
            return suspects.outside
        return suspects.in_string if reader.in_string else suspects.elsewhere

    def _read(self, token: int, before: State | None = None) -> History | None:
        """What has been read with a token more; None where it must not come."""
        try:
            read = self._history.after(self.vocabulary.token_bytes[token], before)
        except Repeated:
            return None
        return None if read.reader.is_dead else read

    def forced(self) -> list[int]:
        forced = self._inner.forced()
        return forced if self._may_come(forced) else []

    def _may_come(self, tokens: Sequence[int]) -> bool:
        trial = self.fork()
        try:
            for token in tokens:
                trial.advance(token)
        except ValueError:
            return False
        return True

    def can_end(self) -> bool:
        return self._inner.can_end()

    def is_done(self) -> bool:
        return self._inner.is_done()

    def advance(self, token: int) -> None:
        read = self._read(token, self._inner.fork())
        if read is None:
            raise ValueError(f"token {token} is not allowed here")
        self._inner.advance(token)
        self._history = read

    def rollback(self, count: int) -> None:
        self._inner.rollback(count)
        for _ in range(count):
            assert self._history.last is not None
            self._history = self._history.last

    def fork(self) -> "UniqueState":
        return UniqueState(self._inner.fork(), self._history)
