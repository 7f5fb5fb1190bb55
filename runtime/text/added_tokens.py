"""Control tokens that are found as the tokenizers library finds them, and those that would not be.

The library looks for some tokens (`normalized`) in a text that the normalizer has rewritten; here all are looked for in
the text as it stands. Where that could give other tokens, the tokenizer is refused.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any


class UnsupportedTokenError(Exception):
    """A tokenizer has a control token that would not be found as its model's own tokenizer finds it."""


def refuse_unsupported(
    markup: Sequence[Mapping[str, Any]], blanks: Sequence[str], normalizer: Mapping[str, Any] | None
) -> None:
    """Refuse control tokens that would not be found right.

    Args:
        markup: their definitions in `tokenizer.json`.
        blanks: the added tokens that are white space.
        normalizer: of `tokenizer.json`.

    Raises:
        UnsupportedTokenError: names the first one, and why.
    """
    kinds = set(_kinds(normalizer))
    for token in markup:
        why = _why_not(token, bool(blanks), kinds)
        if why is not None:
            raise UnsupportedTokenError(
                f"the tokenizer's added token {token['content']!r} {why}, which promptlang can't follow; where that is "
                "a mistake in tokenizer.json, mend its flags there"
            )


def _why_not(token: Mapping[str, Any], has_blanks: bool, kinds: set[str]) -> str | None:
    strips = token["lstrip"] or token["rstrip"]
    if strips and has_blanks:
        return "takes up white space (`lstrip`, `rstrip`) beside other added tokens that are white space"
    if not token["normalized"]:
        return None
    if strips and _SPACES in kinds:
        return "is `normalized`, and takes up white space (`lstrip`, `rstrip`) of which the normalizer makes U+2581"
    allowed = set() if {" ", "▁"} & set(token["content"]) else {_SPACES}
    if allowed and token["special"]:
        # Early conversions of Llama 2 say so of `<s>` by mistake; later ones don't, and the ids are theirs.
        allowed.add("Prepend")
    if token["content"].isascii():
        allowed.add("NFC")
    unknown = sorted(kinds - allowed)
    return f"is `normalized`, by a normalizer with {', '.join(unknown)}" if unknown else None


_SPACES = "spaces as U+2581"


def _kinds(normalizer: Mapping[str, Any] | None) -> Iterator[str]:
    """The parts of a normalizer, by what they are called here."""
    if normalizer is None:
        return
    if normalizer["type"] == "Sequence":
        for part in normalizer["normalizers"]:
            yield from _kinds(part)
    elif normalizer["type"] == "Replace" and normalizer["pattern"] == {"String": " "} and normalizer["content"] == "▁":
        yield _SPACES
    else:
        yield str(normalizer["type"])
