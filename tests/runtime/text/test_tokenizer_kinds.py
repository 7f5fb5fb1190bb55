"""Healing and stops on tokenizers of every kind: reader, prompt and cache see the same text."""

from functools import cache

import pytest
import tiny_tokenizers
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tiny_engine import TEMPLATE
from tiny_models import tiny_network

from examples import examples
from promptlang.runtime.backend import Select
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.healing import heal
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.models.loading import LoadedModel
from promptlang.runtime.models.transformers_model import TransformersModel
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GeneratedTokens, GenerateTokens
from promptlang.runtime.sampler import Sampling
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings
from promptlang.runtime.usage import Usage

KINDS = ["byte_level", "sentence_piece", "metaspace", "spaceless"]
TEXTS = st.lists(
    st.sampled_from(["the", " fox", " ", "dog", "s", "é", "世", "🙂", "\n", "END", "j", "u"]), max_size=8
).map("".join)


@cache
def loaded(kind: str) -> LoadedModel:
    backend = getattr(tiny_tokenizers, kind)()
    end = backend.token_to_id("<|im_end|>")
    size = backend.get_vocab_size()
    tokenizer = Tokenizer(backend, TokenizerSettings(size, (end,), {"eos_token": "<|im_end|>"}, TEMPLATE))
    network = tiny_network(vocab_size=size, max_position_embeddings=1024)
    return LoadedModel(TransformersModel(network), tokenizer, kind)


def new_engine(kind: str) -> Engine:
    return Engine(loaded(kind), EngineOptions(kv_bytes=4 << 20))


def write(engine: Engine, prompt: TokenPrompt, seed: int = 0, **options: object) -> tuple[GeneratedTokens, str]:
    """An answer, and what was streamed of it."""
    shown: list[str] = []
    options.setdefault("max_tokens", 24)
    answer = engine.submit(
        GenerateTokens(prompt, RandomStream(seed), Usage(), on_text=shown.append, **options)  # type: ignore[arg-type]
    )
    while engine.step():
        pass
    engine.check()
    assert isinstance(answer.result, GeneratedTokens), answer.error
    return answer.result, "".join(shown)


def prompt_of(engine: Engine, text: str) -> TokenPrompt:
    prompt = engine.new_prompt()
    prompt.add(text)
    prompt.flush()
    return prompt


def bytes_of(engine: Engine, tokens: list[int]) -> bytes:
    return b"".join(engine.tokenizer.token_bytes[token] for token in tokens)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=examples(40))
@given(text=TEXTS)
def test_text_comes_back_byte_for_byte(kind: str, text: str) -> None:
    tokenizer = loaded(kind).tokenizer
    assert b"".join(tokenizer.token_bytes[token] for token in tokenizer.encode(text)) == text.encode()


# Healing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=examples(25))
@given(text=TEXTS.filter(bool), seed=st.integers(0, 5))
def test_a_healed_answer_goes_on_from_the_text_and_keeps_every_earlier_token(kind: str, text: str, seed: int) -> None:
    engine = new_engine(kind)
    prompt = prompt_of(engine, text)
    before = list(prompt.flush())
    head = heal(prompt, engine.vocabulary)
    kept = list(prompt.flush())
    assert kept == before[: len(kept)]
    sent = (engine.tokenizer.lead([], text) + text).encode()
    assert bytes_of(engine, kept) + head == sent
    result, shown = write(engine, prompt, seed, withdrawn=head, sampling=Sampling(temperature=1.0), max_tokens=6)
    after = prompt.flush()
    assert after[: len(kept)] == kept
    assert bytes_of(engine, after).startswith(sent)
    assert bytes_of(engine, after)[len(sent) :].decode(errors="replace") == result.text == shown


@pytest.mark.parametrize(
    ("kind", "text", "head"),
    [
        ("byte_level", "The dog ", b" "),
        ("metaspace", "the ", b" "),
        ("metaspace", "the dog", b" dog"),
        ("spaceless", "the ", b""),
        ("spaceless", "the jump", b"jump"),
        ("metaspace", "the dog.", b""),
    ],
)
def test_a_token_is_taken_back_where_another_extends_it(kind: str, text: str, head: bytes) -> None:
    engine = new_engine(kind)
    assert heal(prompt_of(engine, text), engine.vocabulary) == head


# The first space --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [*KINDS, "metaspace_first"])
@settings(deadline=None, max_examples=25)
@given(text=TEXTS)
def test_a_prompt_begins_as_the_tokenizer_begins_a_text(kind: str, text: str) -> None:
    engine = new_engine(kind)
    theirs = getattr(tiny_tokenizers, kind)().encode(text, add_special_tokens=False).ids
    assert prompt_of(engine, text).flush() == theirs


@pytest.mark.parametrize("kind", ["sentence_piece", "metaspace", "metaspace_first"])
def test_an_option_at_the_beginning_is_one_that_a_text_may_begin_with(kind: str) -> None:
    engine = new_engine(kind)
    backend = LocalBackend(engine)
    prompt = backend.new_prompt()
    answer = backend.select(Select(prompt, ("fox", "dog"), Usage()))
    while engine.step():
        pass
    assert answer.result is not None
    chosen = ("fox", "dog")[answer.result.index]
    written = getattr(tiny_tokenizers, kind)().encode(chosen, add_special_tokens=False).ids
    assert prompt.flush()[-len(written) :] == written


# Stops -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=examples(40))
@example(seed=123, at=6, length=1, text=" ")
@given(seed=st.integers(0, 10**6), at=st.integers(0, 12), length=st.integers(1, 3), text=TEXTS)
def test_a_stop_is_in_no_answer_no_stream_and_no_prompt(kind: str, seed: int, at: int, length: int, text: str) -> None:
    sampling = Sampling(temperature=1.0)
    alone = new_engine(kind)
    free, _ = write(alone, prompt_of(alone, text), seed, sampling=sampling)
    stop = free.text[at : at + length]
    if not stop or "\ufffd" in stop:
        return
    engine = new_engine(kind)
    prompt = prompt_of(engine, text)
    before = bytes_of(engine, prompt.flush())
    result, shown = write(engine, prompt, seed, sampling=sampling, stop=(stop,))
    assert result.finish == "stop"
    assert stop not in result.text
    assert free.text.startswith(result.text)
    assert shown == result.text
    assert bytes_of(engine, prompt.flush()).decode(errors="replace") == (before.decode() + result.text)
    check_warm_is_cold(kind, engine, prompt)


def check_warm_is_cold(kind: str, engine: Engine, prompt: TokenPrompt) -> None:
    tokens = list(prompt.flush())
    fresh = new_engine(kind)
    again = fresh.new_prompt()
    again.extend(tokens[len(again.flush()) :])
    assert write(engine, prompt, max_tokens=6)[0].tokens == write(fresh, again, max_tokens=6)[0].tokens
