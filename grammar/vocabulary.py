"""The tokens of a tokenizer, as constraints need them."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt
from llguidance import LLTokenizer

Mask = npt.NDArray[np.int32]
"""Packed allowed-token bits, int32 [ceil(vocabulary / 32)]; token t is bit t % 32 of word t // 32."""

CONTINUATION = (0x80, 0xBF)
"""The bytes that go on with a character in UTF-8."""


def allows(mask: Mask, token: int) -> bool:
    """Whether a mask has a token."""
    return bool(mask[token >> 5] >> (token & 31) & 1)


class Vocabulary:
    """Token bytes, and which tokens an answer may hold.

    Args:
        token_bytes: the exact bytes of each token, one entry a row of the model's output head; empty for tokens
            without text.
        special_ids: control tokens; never legal.
        eos_ids: tokens that end an answer; never legal.
        encode: the tokens of a text, none of them special and nothing added.
        fingerprint: equal for tokenizers that encode and decode alike.
    """

    def __init__(
        self,
        token_bytes: Sequence[bytes],
        special_ids: frozenset[int],
        eos_ids: Sequence[int],
        encode: Callable[[str], list[int]],
        fingerprint: str,
    ) -> None:
        self.token_bytes = token_bytes
        self.eos_ids = tuple(eos_ids)
        self.special_ids = special_ids | frozenset(eos_ids)
        self.encode = encode
        self.fingerprint = fingerprint
        self.size = len(token_bytes)
        self.mask_words = -(-self.size // 32)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def by_bytes(self) -> dict[bytes, list[int]]:
        """The legal tokens of some bytes."""
        found: dict[bytes, list[int]] = {}
        for token, text in enumerate(self.token_bytes):
            if text and token not in self.special_ids:
                found.setdefault(text, []).append(token)
        return found

    def can_spell(self, character: str) -> bool:
        """Whether there are tokens for a character, or for its bytes."""
        text = character.encode()
        return text in self.by_bytes or all(text[at : at + 1] in self.by_bytes for at in range(len(text)))

    @cached_property
    def single_bytes(self) -> npt.NDArray[np.int64]:
        """One legal token for each byte that is a token: int64, in the order of the bytes."""
        singles = (self.by_bytes.get(bytes([byte])) for byte in range(256))
        return np.array([tokens[0] for tokens in singles if tokens], dtype=np.int64)

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest legal token."""
        return max(map(len, self.by_bytes), default=0)

    @cached_property
    def text_mask(self) -> Mask:
        """Every legal token."""
        return self.mask([token for tokens in self.by_bytes.values() for token in tokens])

    @cached_property
    def _sorted_bytes(self) -> list[bytes]:
        return sorted(self.by_bytes)

    def extending(self, *heads: bytes) -> Mask:
        """The legal tokens whose bytes begin with one of `heads`, themselves included."""
        return self.mask([token for head in heads for text in self._with_head(head) for token in self.by_bytes[text]])

    def has_longer(self, head: bytes) -> bool:
        """Whether a legal token's bytes begin with `head` and go on."""
        return any(text != head for text in self._with_head(head))

    def _with_head(self, head: bytes) -> Iterator[bytes]:
        ordered = self._sorted_bytes
        for at in range(bisect_left(ordered, head), len(ordered)):
            if not ordered[at].startswith(head):
                return
            yield ordered[at]

    def mask(self, tokens: Sequence[int]) -> Mask:
        """Packed bits of some tokens."""
        bits = np.zeros(self.mask_words * 32, dtype=np.uint8)
        bits[np.asarray(tokens, dtype=np.int64)] = 1
        return np.packbits(bits, bitorder="little").view(np.int32)

    def tokens_of(self, mask: Mask) -> list[int]:
        """The tokens whose bits are set."""
        found: list[int] = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
        return found

    def spell(self, text: bytes) -> list[int]:
        """Tokens for any bytes: as the tokenizer encodes them where they are text, else as they can be had."""
        try:
            return self.encode(text.decode())
        except UnicodeDecodeError:
            return list(self.llguidance.tokenize_bytes(text))

    def forced_tokens(self, text: bytes, is_whole: bool) -> list[int]:
        """Tokens for a text that must come.

        Args:
            text: UTF-8, perhaps cut inside a character at its end. One that begins inside a character gives no tokens:
                how it is tokenised depends on what stands before.
            is_whole: whether nothing can follow. Otherwise only those tokens are given that stay, whatever follows.
        """
        if text and CONTINUATION[0] <= text[0] <= CONTINUATION[1]:
            return []
        if is_whole:
            return list(self.llguidance.tokenize_bytes(text))
        tokens, _ = self.llguidance.tokenize_partial(text)
        return list(tokens)

    @cached_property
    def llguidance(self) -> LLTokenizer:
        """The same tokenizer for llguidance; takes 0.2 s for 49,152 tokens."""
        return LLTokenizer(_Tokens(self), n_vocab=self.size, eos_token=list(self.eos_ids))


class _Tokens:
    """What `LLTokenizer` asks of a tokenizer written in Python."""

    is_tokenizer_wrapper = True
    bos_token_id = None

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.eos_token_id = vocabulary.eos_ids[0]
        self.tokens = list(vocabulary.token_bytes)
        self.special_token_ids = sorted(vocabulary.special_ids)
        self._encode = vocabulary.encode

    def __call__(self, text: bytes | str) -> list[int]:
        return self._encode(text.decode() if isinstance(text, bytes) else text)
