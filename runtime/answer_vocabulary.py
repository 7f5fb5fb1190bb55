"""What writing an answer needs to know of a tokenizer's tokens, worked out once."""

from bisect import bisect_left
from collections.abc import Iterable
from functools import cached_property

import numpy as np

from promptlang.grammar.constraint import Mask
from promptlang.runtime.tokenizer import Tokenizer


class AnswerVocabulary:
    """Masks and look-ups over a tokenizer's tokens.

    Args:
        tokenizer: whose tokens.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.token_bytes = tokenizer.token_bytes
        self.encode = tokenizer.encode
        self._no_text = tokenizer.special_ids | frozenset(tokenizer.eos_ids)
        self._size = tokenizer.vocab_size

    @cached_property
    def text_mask(self) -> Mask:
        """Every token that is text: neither a control token nor an end."""
        return self._mask(token for token in range(self._size) if token not in self._no_text)

    @cached_property
    def _by_bytes(self) -> list[tuple[bytes, int]]:
        return sorted((text, token) for token, text in enumerate(self.token_bytes) if token not in self._no_text)

    def extending(self, head: bytes) -> Mask:
        """The tokens whose bytes begin with `head`, itself included."""
        return self._mask(self._extensions(head))

    def has_longer(self, head: bytes) -> bool:
        """Whether a token's bytes begin with `head` and go on."""
        return any(self.token_bytes[token] != head for token in self._extensions(head))

    def _extensions(self, head: bytes) -> Iterable[int]:
        at = bisect_left(self._by_bytes, (head, -1))
        while at < len(self._by_bytes) and self._by_bytes[at][0].startswith(head):
            yield self._by_bytes[at][1]
            at += 1

    def _mask(self, tokens: Iterable[int]) -> Mask:
        bits = np.zeros(-(-self._size // 32) * 32, dtype=np.uint8)
        bits[np.fromiter(tokens, dtype=np.int64)] = 1
        return np.packbits(bits, bitorder="little").view(np.int32)
