"""Drafts without a model: what stood behind the same tokens before, in the text itself or in other answers.

Text repeats itself: an answer quotes its source, rows of a table are answered alike. The continuation of the longest
earlier occurrence of a text's end is a guess at what comes next, and costs a few microseconds (prompt lookup decoding,
Saxena, 2023; Yang et al., "Inference with Reference", arXiv:2304.04487).
"""

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from promptlang.runtime.cache.prefix_cache import Namespace, TokenIds

LONGEST = 32
"""Tokens of a text's end that are compared; an occurrence of so many is as good as a longer one."""

REMEMBERED = 1 << 16
"""Tokens of earlier answers that are kept: a search takes some twenty microseconds."""

LEAD = LONGEST
"""Tokens of the prompt that are kept before an answer, so that the beginning of an answer can be found by them."""

NAMESPACES = 16
"""Whose answers are kept; those of the one that was longest unused go first."""

_BORDER = -1
"""No token: between two answers."""


@dataclass(frozen=True)
class Found:
    """An earlier occurrence.

    Attributes:
        length: tokens that agree before it.
        tokens: int32, what stood behind, at least one.
    """

    length: int
    tokens: TokenIds


def find(text: TokenIds, end: TokenIds, most: int) -> Found | None:
    """The latest of the longest occurrences of a suffix of `end` that something follows.

    Args:
        text: int32, where to look.
        end: int32, what a text ends with.
        most: tokens to give.
    """
    places = np.flatnonzero(text[:-1] == end[-1])
    length = 1
    while length < min(LONGEST, len(end)):
        longer = places[places >= length]
        longer = longer[text[longer - length] == end[-1 - length]]
        if not len(longer):
            break
        places, length = longer, length + 1
    for place in places[:-9:-1]:
        behind = text[place + 1 : place + 1 + most]
        borders = np.flatnonzero(behind == _BORDER)
        if len(borders):
            behind = behind[: borders[0]]
        if len(behind):
            return Found(length, behind)
    return None


class Answers:
    """The last answers of each namespace, as texts to look in."""

    def __init__(self) -> None:
        self._texts: OrderedDict[Namespace, _Text] = OrderedDict()

    def add(self, namespace: Namespace, tokens: TokenIds) -> None:
        """Remember an answer with what stood before it."""
        text = self._texts.setdefault(namespace, _Text())
        self._texts.move_to_end(namespace)
        text.add(tokens)
        while len(self._texts) > NAMESPACES:
            self._texts.popitem(last=False)

    def find(self, namespace: Namespace, end: TokenIds, most: int) -> Found | None:
        """See `find`; among this namespace's answers."""
        text = self._texts.get(namespace)
        return None if text is None else find(text.tokens, end, most)


class _Text:
    """Answers one after another, the oldest overwritten.

    Attributes:
        tokens: int32, all that is there, with borders.
    """

    def __init__(self) -> None:
        self.tokens = np.empty(0, np.int32)
        self._place = 0

    def add(self, tokens: TokenIds) -> None:
        entry = np.append(tokens[-REMEMBERED // 2 :], np.int32(_BORDER))
        if self._place + len(entry) > REMEMBERED:
            self._place = 0
        missing = self._place + len(entry) - len(self.tokens)
        if missing > 0:
            # Room grows by half, so that many short answers aren't copied again and again.
            room = np.full(min(missing + len(self.tokens) // 2, REMEMBERED), _BORDER, np.int32)
            self.tokens = np.append(self.tokens, room)
        self.tokens[self._place : self._place + len(entry)] = entry
        self._place += len(entry)
