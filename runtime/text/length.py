"""How few tokens a text can have, known without tokenising it."""

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

_NFC = 3
"""By how much NFC may shorten a text, in bytes: it makes three jamo, of three bytes each, one syllable of three."""
_SPLITS = frozenset({"ByteLevel", "Metaspace", "Digits"})
"""Pre-tokenizers that only cut."""


class LongTextError(Exception):
    """Text with more tokens than there is room for; `str()` says how many."""

    def __init__(self, tokens: int, bytes_of_text: int) -> None:
        super().__init__(f"at least {tokens} tokens of prompt ({bytes_of_text} bytes of text)")
        self.tokens = tokens


def bytes_a_token(definition: dict[str, Any], token_bytes: Sequence[bytes]) -> int | None:
    """The most bytes of text that a token can stand for.

    Args:
        definition: `tokenizer.json`.
        token_bytes: of each token.

    Returns:
        None where a token may stand for any number: where unknown characters may be one token, or where what comes
        before the vocabulary drops what it likes. Byte-level BPE drops only bytes that are `unspelled`.
    """
    is_byte_bpe = definition["model"]["type"] == "BPE" and "ByteLevel" in map(
        _type, _parts(definition["pre_tokenizer"])
    )
    spells_all = is_byte_bpe or not unspelled(token_bytes)
    shrinks = [_shrink(part) for name in ("normalizer", "pre_tokenizer") for part in _parts(definition[name])]
    if not spells_all or None in shrinks:
        return None
    return prod(shrink for shrink in shrinks if shrink is not None) * max(map(len, token_bytes))


def unspelled(token_bytes: Sequence[bytes]) -> bytes:
    """The bytes that are no token by themselves."""
    return bytes(set(range(256)) - {text[0] for text in token_bytes if len(text) == 1})


def _type(part: dict[str, Any]) -> str:
    return str(part["type"])


def _parts(component: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
    """A component, or those of a sequence."""
    if component is None:
        return
    inside = component.get("normalizers") or component.get("pretokenizers")
    if component["type"] != "Sequence":
        yield component
    for part in inside or ():
        yield from _parts(part)


def _shrink(part: dict[str, Any]) -> int | None:
    """By how much a component may shorten a text; None for any number."""
    kind = part["type"]
    if kind in _SPLITS or kind == "Prepend" or (kind == "Split" and part["behavior"] != "Removed"):
        return 1
    if kind == "Replace" and part["pattern"] == {"String": " "} and part["content"] == "▁":
        return 1  # and `token_bytes` has a space for it
    return _NFC if kind == "NFC" else None
