"""Tokens are exact bytes, and data stays data."""

import pytest
import tiny_tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from promptlang.runtime.text.template import TemplateRefusedError
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message.role == 'system' %}{{ raise_exception('no system turns') }}{% endif %}"
    "<|im_start|>{{ message.role }}\n{{ message.content | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


def wrap(backend: Backend, template: str | None = TEMPLATE) -> Tokenizer:
    settings = TokenizerSettings(
        vocab_size=backend.get_vocab_size() + 3,
        eos_ids=(backend.token_to_id("</s>"),),
        names={"bos_token": "<s>", "eos_token": "</s>"},
        chat_template=template,
    )
    return Tokenizer(backend, settings)


@pytest.fixture(scope="module", params=["byte_level", "sentence_piece"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return wrap(getattr(tiny_tokenizers, request.param)())


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@settings(deadline=None)
@given(st.lists(TEXTS | st.sampled_from([*tiny_tokenizers.SPECIALS, " ", "\n"]), max_size=6).map("".join))
def test_every_text_comes_back_byte_for_byte(tokenizer: Tokenizer, text: str) -> None:
    tokens = tokenizer.encode(text)
    assert b"".join(tokenizer.token_bytes[token] for token in tokens) == text.encode()
    assert tokenizer.decode(tokens) == text


@settings(deadline=None)
@given(st.lists(TEXTS | st.sampled_from(tiny_tokenizers.SPECIALS), max_size=6).map("".join))
def test_data_never_becomes_a_control_token(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.special_ids.isdisjoint(tokenizer.encode(text))


def test_a_control_token_that_the_vocabulary_knows_as_text_stays_text() -> None:
    tokenizer = wrap(tiny_tokenizers.unigram_with_specials_as_pieces())
    for text in ("</s>", "a</s></s>b", "<</s>/s>"):
        tokens = tokenizer.encode(text)
        assert set(tokenizer.special_tokens.values()).isdisjoint(tokens)
        assert tokenizer.decode(tokens) == text


def test_markup_that_a_model_added_is_no_data_either_but_has_a_text() -> None:
    backend = tiny_tokenizers.byte_level()
    backend.add_tokens([AddedToken("<tool_call>", special=False), AddedToken("    ", special=False)])
    tokenizer = wrap(backend)
    call, indent = backend.token_to_id("<tool_call>"), backend.token_to_id("    ")
    assert call not in tokenizer.encode("<tool_call>")
    assert tokenizer.decode(tokenizer.encode("x <tool_call> y")) == "x <tool_call> y"
    assert tokenizer.encode("    ") == [indent]
    assert tokenizer.special_tokens["<tool_call>"] == call
    assert tokenizer.token_bytes[call] == b"<tool_call>"


def test_added_runs_of_spaces_are_text_and_leave_the_text_around_them_alone() -> None:
    backend = tiny_tokenizers.sentence_piece_with_runs_of_spaces()
    tokenizer = wrap(backend)
    for text in ("the    the  the\n\nthe", "  the", " " * 33):
        tokens = tokenizer.encode(text)
        assert tokens == backend.encode(text).ids
        assert tokenizer.decode(tokens) == text
    assert "▁▁" not in tokenizer.special_tokens


def test_a_vocabulary_may_hold_control_tokens_whose_characters_are_no_bytes() -> None:
    tokenizer = wrap(tiny_tokenizers.byte_level_with_wide_bars())
    start = tokenizer.encode_special("<｜begin▁of▁sentence｜>")
    assert tokenizer.token_bytes[start] == b""
    text = "the <｜begin▁of▁sentence｜> fox"
    assert start not in tokenizer.encode(text)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_a_text_full_of_control_tokens_is_cut_there_alone() -> None:
    tokenizer = wrap(tiny_tokenizers.unigram_with_specials_as_pieces())
    text = "ab</s>" * 3000
    tokens = tokenizer.encode(text)
    assert tokenizer.decode(tokens) == text
    assert set(tokenizer.special_tokens.values()).isdisjoint(tokens)


def test_control_tokens_have_no_bytes_and_a_name(tokenizer: Tokenizer) -> None:
    token = tokenizer.encode_special("<|im_end|>")
    assert tokenizer.token_bytes[token] == b""
    assert token in tokenizer.special_ids
    with pytest.raises(KeyError):
        tokenizer.encode_special("<|no_such|>")


def test_longer_control_tokens_come_first(tokenizer: Tokenizer) -> None:
    lengths = [len(name) for name in tokenizer.special_tokens]
    assert lengths == sorted(lengths, reverse=True)


def test_rows_of_the_head_without_a_token_are_special(tokenizer: Tokenizer) -> None:
    assert len(tokenizer.token_bytes) == tokenizer.vocab_size
    assert tokenizer.special_ids >= {tokenizer.vocab_size - 1, tokenizer.vocab_size - 3}


def test_nothing_is_added_to_text_that_goes_on() -> None:
    for backend in (tiny_tokenizers.byte_level(add_prefix_space=True), tiny_tokenizers.sentence_piece()):
        tokenizer = wrap(backend)
        assert tokenizer.encode("") == []
        assert tokenizer.decode(tokenizer.encode("fox")) == "fox"


def test_the_beginning_token_is_known_where_it_is_the_default() -> None:
    sentence_piece = tiny_tokenizers.sentence_piece()
    assert wrap(sentence_piece).bos_id == sentence_piece.token_to_id("<s>")
    assert wrap(tiny_tokenizers.byte_level()).bos_id is None


def test_broken_utf8_is_replaced() -> None:
    tokenizer = wrap(tiny_tokenizers.byte_level())
    emoji = tokenizer.encode("🦊")
    assert len(emoji) > 1
    assert tokenizer.decode(emoji[:-1]) == "\ufffd"


def test_fingerprints_tell_tokenizers_apart() -> None:
    plain, again = wrap(tiny_tokenizers.byte_level()), wrap(tiny_tokenizers.byte_level())
    assert plain.fingerprint == again.fingerprint
    assert plain.fingerprint != wrap(tiny_tokenizers.sentence_piece()).fingerprint


def test_a_conversation_is_rendered_by_the_models_own_template() -> None:
    tokenizer = wrap(tiny_tokenizers.byte_level())
    rendered = tokenizer.render([{"role": "user", "content": " hi "}], add_generation_prompt=True)
    assert rendered == "<s><|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_a_refusal_by_the_template_is_passed_on() -> None:
    tokenizer = wrap(tiny_tokenizers.byte_level())
    with pytest.raises(TemplateRefusedError, match="no system turns"):
        tokenizer.render([{"role": "system", "content": "x"}])


@pytest.mark.parametrize(
    "source", ["{{ 1 / 0 }}", "{{ messages[7].role }}", "{{ messages.x.y }}", "{% if %}", "{{ f() }}"]
)
def test_a_broken_template_is_a_refusal(source: str) -> None:
    with pytest.raises(TemplateRefusedError):
        wrap(tiny_tokenizers.byte_level(), source).render([{"role": "user", "content": "x"}])


def test_a_model_without_a_template_says_so() -> None:
    tokenizer = wrap(tiny_tokenizers.byte_level(), None)
    assert not tokenizer.has_chat_template
    with pytest.raises(TemplateRefusedError, match="no chat template"):
        tokenizer.render([])


def test_a_template_can_not_leave_its_sandbox() -> None:
    source = "{{ messages.__class__.__mro__[1].__subclasses__() }}"
    with pytest.raises(TemplateRefusedError):
        wrap(tiny_tokenizers.byte_level(), source).render([])


def test_generation_blocks_and_json_work_in_templates() -> None:
    source = "{% generation %}{{ messages[0] | tojson }}{% endgeneration %}{% for x in [1, 2] %}{% break %}{% endfor %}"
    tokenizer = wrap(tiny_tokenizers.byte_level(), source)
    assert tokenizer.render([{"role": "<é>"}]) == '{"role": "<é>"}'
