"""Which control tokens a text holds: literal text may hold them, data never does.

They are found as the tokenizers library finds added tokens, with all the flags that these have, so that a rendered
conversation has the tokens that the model was trained on.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Literal, TypeAlias


@dataclass(frozen=True)
class Run:
    """Text to tokenise: `literal` text may hold control tokens, data never does."""

    text: str
    literal: bool


PartKind: TypeAlias = Literal["text", "control", "lookalike"]


@dataclass(frozen=True)
class Part:
    """A part of a prompt, to be read by people: text, a `control` token by its name, or text that is only a
    `lookalike` of one."""

    text: str
    kind: PartKind


@dataclass(frozen=True)
class _Found:
    """A control token, and where it and the white space that it takes up begin and end."""

    token: int
    start: int
    end: int


class _Names:
    """Control tokens that are looked for together.

    Args:
        added: their definitions in `tokenizer.json`.
    """

    def __init__(self, added: Iterable[Mapping[str, Any]]) -> None:
        self._by_text = {token["content"]: token for token in added}
        longest_first = sorted(self._by_text, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, longest_first)) or "(?!)")

    def find(self, text: str, start: int, end: int) -> Iterator[_Found]:
        """Those that lie in a part of a text; what stands around them may lie outside."""
        for match in self._pattern.finditer(text, start, end):
            flags = self._by_text[match.group()]
            if flags["single_word"] and _is_in_word(text, *match.span()):
                continue
            first, last = match.span()
            if flags["lstrip"]:
                first = len(text[:first].rstrip())
            if flags["rstrip"]:
                last = len(text) - len(text[last:].lstrip())
            yield _Found(flags["id"], first, last)


class Markup:
    """A tokenizer's control tokens.

    Args:
        added: their definitions in `tokenizer.json`.
    """

    def __init__(self, added: Sequence[Mapping[str, Any]]) -> None:
        self._first = _Names(token for token in added if not token["normalized"])
        self._then = _Names(token for token in added if token["normalized"])

    def split(self, runs: Sequence[Run]) -> list[str | int]:
        """Text and control tokens in turn; all text between two control tokens is one.

        Args:
            runs: what was written, in order.
        """
        text = "".join(run.text for run in runs)
        literal = list(_literal_spans(runs))
        found: list[_Found] = []
        for names in (self._first, self._then):
            spans = [free for span in literal for free in _free(span, found)]
            found += [one for span in spans for one in names.find(text, *span)]
            found.sort(key=lambda one: one.start)
        parts: list[str | int] = []
        at = 0
        for one in found:
            parts += [text[at : one.start], one.token]
            at = max(at, one.end)
        return [part for part in (*parts, text[at:]) if part != ""]


def _literal_spans(runs: Sequence[Run]) -> Iterator[tuple[int, int]]:
    """Where literal text lies; runs of it side by side are one."""
    ends = list(accumulate(len(run.text) for run in runs))
    start = None
    for run, end in zip(runs, ends, strict=True):
        if run.literal and start is None:
            start = end - len(run.text)
        elif not run.literal and run.text and start is not None:
            yield start, end - len(run.text)
            start = None
    if start is not None:
        yield start, ends[-1]


def _free(span: tuple[int, int], found: Sequence[_Found]) -> Iterator[tuple[int, int]]:
    """What of a span no control token has taken up."""
    at, end = span
    for one in found:
        if one.end > at and one.start < end:
            yield at, max(at, one.start)
            at = one.end
    if at < end:
        yield at, end


def _is_in_word(text: str, start: int, end: int) -> bool:
    around = text[max(0, start - 1) : start] + text[end : end + 1]
    return re.search(r"\w", around) is not None
