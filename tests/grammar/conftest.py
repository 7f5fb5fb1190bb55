"""Vocabularies: the embedded model's, and those of small tokenizers of three kinds."""

import pytest
import tiny_tokenizers
import tokenizers

from promptlang.grammar.vocabulary import Vocabulary
from promptlang.runtime.models import embedded, gguf_files
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings


def _tiny(backend: tokenizers.Tokenizer) -> Vocabulary:
    end = backend.token_to_id("</s>")
    return Tokenizer(backend, TokenizerSettings(backend.get_vocab_size(), (end,))).vocabulary


@pytest.fixture(scope="session")
def byte_level() -> Vocabulary:
    return _tiny(tiny_tokenizers.byte_level())


@pytest.fixture(scope="session", params=["byte_level", "sentence_piece", "metaspace"])
def vocabulary(request: pytest.FixtureRequest) -> Vocabulary:
    return _tiny(getattr(tiny_tokenizers, request.param)())


@pytest.fixture(scope="session")
def embedded_vocabulary() -> Vocabulary:
    file = embedded.find_gguf()
    if file is None:
        pytest.skip(f"needs {embedded.PACKAGE}")
    return gguf_files.load_tokenizer(gguf_files.converted(file, lambda message: None)).vocabulary
