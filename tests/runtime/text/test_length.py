"""How few tokens a text can have is never more than it has."""

import unicodedata

import pytest
import tiny_tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from examples import examples
from promptlang.runtime.text.length import LongTextError
from promptlang.runtime.text.markup import Run
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings


def wrapped(backend: Backend) -> Tokenizer:
    return Tokenizer(backend, TokenizerSettings(backend.get_vocab_size(), ()))


def composing() -> Backend:
    """As in Qwen: byte-level, of composed characters."""
    backend = tiny_tokenizers.byte_level()
    backend.normalizer = normalizers.NFC()
    return backend


def lacking() -> Backend:
    """As in SmolLM: byte-level, without the bytes that were in no text it was trained on."""
    backend = Backend(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.train_from_iterator(["the fox xxxx"], trainers.BpeTrainer(vocab_size=40, show_progress=False))
    return backend


BOUNDED = {
    "lacking": wrapped(lacking()),
    "byte_level": wrapped(tiny_tokenizers.byte_level()),
    "composing": wrapped(composing()),
    "sentence_piece": wrapped(tiny_tokenizers.sentence_piece()),
    "metaspace": wrapped(tiny_tokenizers.metaspace()),
}


@pytest.mark.parametrize("kind", BOUNDED)
@settings(deadline=None, max_examples=examples(100))
@example(text=unicodedata.normalize("NFD", "각" * 40))
@example(text=" the fox" * 20)
@example(text="\x04é" * 40)
@given(text=st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" the"), max_size=30))
def test_no_text_that_fits_is_refused(kind: str, text: str) -> None:
    tokenizer = BOUNDED[kind]
    limit = len(tokenizer.encode(text))
    tokenizer.refuse_long([text], limit)
    tokenizer.encode_after([], [Run(text, literal=False)], len(tokenizer.encode_after([], [Run(text, literal=False)])))


@pytest.mark.parametrize("kind", BOUNDED)
def test_a_text_that_can_not_fit_is_refused_with_numbers(kind: str) -> None:
    with pytest.raises(LongTextError, match=r"at least \d+ tokens.*100000 bytes"):
        BOUNDED[kind].refuse_long(["x" * 100_000], 100)


@pytest.mark.parametrize("normalizer", [normalizers.NFKC(), normalizers.Replace("x", ""), normalizers.StripAccents()])
def test_where_a_token_may_stand_for_any_text_nothing_is_refused(normalizer: normalizers.Normalizer) -> None:
    backend = tiny_tokenizers.byte_level()
    backend.normalizer = normalizer
    wrapped(backend).refuse_long(["x" * 100_000], 100)
    wrapped(tiny_tokenizers.spaceless()).refuse_long(["\u0101" * 100_000], 100)
