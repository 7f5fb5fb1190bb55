"""Literal text has the ids that the tokenizers library gives it, for added tokens with every combination of flags."""

from functools import cache
from itertools import combinations

import pytest
import tiny_tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, normalizers
from tokenizers import Tokenizer as Backend

from examples import examples
from promptlang.runtime.text.added_tokens import UnsupportedTokenError
from promptlang.runtime.text.markup import Run
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings

FLAGS = ("special", "lstrip", "rstrip", "normalized", "single_word")
COMBINATIONS = [frozenset(chosen) for size in range(6) for chosen in combinations(FLAGS, size)]
PIECES = ["<t>", "<t>s", "[T]", " ", "  ", "the", " fox", "dogs", "##s", "<", "_", ".", "\n", "é"]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=10).map("".join)

Flags = frozenset[str]


def with_tokens(kind: str, first: Flags, second: Flags = frozenset()) -> Backend:
    """A tokenizer of a kind, with two more tokens."""
    backend: Backend = getattr(tiny_tokenizers, kind)()
    for text, flags in (("<t>", first), ("[T]", second)):
        token = AddedToken(text, **{name: name in flags for name in FLAGS})
        (backend.add_special_tokens if "special" in flags else backend.add_tokens)([token])
    return backend


def wrapped(backend: Backend) -> Tokenizer:
    return Tokenizer(Backend.from_str(backend.to_str()), TokenizerSettings(backend.get_vocab_size(), ()))


@cache
def both(kind: str, first: Flags, second: Flags) -> tuple[Backend, Tokenizer] | None:
    """The library's tokenizer and ours; None where that is refused."""
    backend = with_tokens(kind, first, second)
    try:
        return backend, wrapped(backend)
    except UnsupportedTokenError:
        return None


NORMALIZED = {flags for flags in COMBINATIONS if "normalized" in flags}
STRIPS = {flags for flags in COMBINATIONS if flags & {"lstrip", "rstrip"}}
EARLY = {flags for flags in NORMALIZED if "special" in flags and not flags & {"lstrip", "rstrip"}}
"""Of control tokens of early Llama 2 conversions: taken as later conversions have them."""
REFUSED: dict[str, set[Flags]] = {
    "byte_level": set(),
    "metaspace": set(),
    "metaspace_first": set(),
    "spaceless": set(),
    "sentence_piece": NORMALIZED - EARLY,
    "sentence_piece_with_runs_of_spaces": STRIPS,
    "word_piece": NORMALIZED,
}


@pytest.mark.parametrize("kind", REFUSED)
def test_only_flags_that_can_not_be_followed_are_refused_and_by_name(kind: str) -> None:
    for flags in COMBINATIONS:
        backend = with_tokens(kind, flags)
        if flags in REFUSED[kind]:
            with pytest.raises(UnsupportedTokenError, match="'<t>'"):
                wrapped(backend)
        else:
            wrapped(backend)


@pytest.mark.parametrize("kind", REFUSED)
@settings(deadline=None, max_examples=examples(150))
@given(first=st.sampled_from(COMBINATIONS), second=st.sampled_from(COMBINATIONS), text=TEXTS)
def test_literal_text_has_the_ids_of_the_models_own(kind: str, first: Flags, second: Flags, text: str) -> None:
    there = both(kind, first, second)
    if there is None:
        assert {first, second} & REFUSED[kind]
        return
    theirs, ours = there
    if kind == "sentence_piece":
        first, second = first - {"normalized"}, second - {"normalized"}
        theirs = with_tokens(kind, first, second)
    assert ours.encode_after([], [Run(text, literal=True)]) == theirs.encode(text, add_special_tokens=False).ids


@pytest.mark.parametrize(
    ("normalizer", "content", "is_refused"),
    [
        (None, "<É>", False),
        (normalizers.Sequence([]), "<É>", False),
        (normalizers.NFC(), "<t>", False),
        (normalizers.NFC(), "<É>", True),
        (normalizers.NFKC(), "<t>", True),
        (normalizers.Lowercase(), "<t>", True),
        (normalizers.Replace(" ", "▁"), "<t>", False),
        (normalizers.Replace(" ", "▁"), "< t>", True),
        (normalizers.Replace("t", "u"), "<t>", True),
    ],
)
def test_a_normalized_token_needs_a_normalizer_that_leaves_it_alone(
    normalizer: normalizers.Normalizer | None, content: str, is_refused: bool
) -> None:
    backend = tiny_tokenizers.byte_level()
    if normalizer is not None:
        backend.normalizer = normalizer
    backend.add_tokens([AddedToken(content, normalized=True)])
    if is_refused:
        with pytest.raises(UnsupportedTokenError, match=content):
            wrapped(backend)
    else:
        wrapped(backend)
