"""Constraints compiled while the model loads are there when the program asks for them."""

from pathlib import Path

import pytest
from tiny_engine import tiny_engine, tiny_tokenizer

import promptlang.grammar.compiler as compiler
from promptlang.grammar.shapes import ContextFree, Int, Pattern
from promptlang.runtime.models import embedded, gguf_files
from promptlang.runtime.select import encode_options
from promptlang.session.ahead import compile_ahead


@pytest.fixture
def tiny_is_embedded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(embedded, "find_gguf", lambda: tmp_path / "model.gguf")
    monkeypatch.setattr(gguf_files, "kept_folder", lambda gguf: tmp_path)
    monkeypatch.setattr(gguf_files, "load_tokenizer", lambda folder: tiny_tokenizer())


@pytest.mark.usefixtures("tiny_is_embedded")
def test_what_was_compiled_ahead_is_found_again() -> None:
    shapes = [Int(1, 71), ContextFree("start: start"), Pattern("[a-f]{3}")]
    compile_ahead(shapes, [], "embedded").join()
    missed = compiler._compile.cache_info().misses
    vocabulary = tiny_engine().vocabulary
    for shape in (shapes[0], shapes[2]):
        compiler.compile_constraint(shape, vocabulary)
    assert compiler._compile.cache_info().misses == missed


@pytest.mark.usefixtures("tiny_is_embedded")
def test_another_models_tokenizer_is_not_guessed() -> None:
    compile_ahead([Int(1, 72)], [], "some/model").join()
    missed = compiler._compile.cache_info().misses
    compiler.compile_constraint(Int(1, 72), tiny_engine().vocabulary)
    assert compiler._compile.cache_info().misses == missed + 1


@pytest.mark.usefixtures("tiny_is_embedded")
def test_options_that_were_encoded_ahead_are_not_encoded_again() -> None:
    options = ("a quick fox", "a lazy dog")
    compile_ahead([], [options], "embedded").join()
    missed = encode_options.cache_info().misses
    engine = tiny_engine()
    assert encode_options(options, engine.vocabulary) == tuple(tuple(engine.tokenizer.encode(text)) for text in options)
    assert encode_options.cache_info().misses == missed
