"""A prompt's tokens are those of the rendered conversation, and data in it stays data."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny_engine import tiny_tokenizer
from tiny_tokenizers import byte_level
from tokenizers import processors

from promptlang.runtime.healing import heal
from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.text.chat_template import ChatTemplate, TemplateError
from promptlang.runtime.text.tokenizer import Tokenizer, TokenizerSettings

CHATML = "{% for m in messages %}{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}{% endfor %}"
WITH_DEFAULT_SYSTEM = (
    "{% if messages[0].role != 'system' %}<|im_start|>system\nBe nice.<|im_end|>\n{% endif %}" + CHATML
)
SYSTEM_INSIDE_USER = (
    "{% for m in messages %}"
    "{% if m.role == 'system' %}"
    "{% elif m.role == 'user' %}<|im_start|>[INST] "
    "{% if loop.index0 == 1 and messages[0].role == 'system' %}{{ messages[0].content + '\n\n' }}{% endif %}"
    "{{ m.content }} [/INST]"
    "{% else %}{{ m.content }}<|im_end|>{% endif %}{% endfor %}"
)
TRIMMING = CHATML.replace("m.content", "(m.content | trim)")
NO_SYSTEM = "{% if messages[0].role == 'system' %}{{ raise_exception('no system turn') }}{% endif %}" + CHATML


TALK = [("system", "Be brief."), ("user", "How are you?"), ("assistant", "Fine."), ("user", "And the dog?")]


def tokenizer_with(template: str) -> Tokenizer:
    backend = byte_level()
    return Tokenizer(backend, TokenizerSettings(backend.get_vocab_size(), (4,), {}, template))


def new_prompt(tokenizer: Tokenizer) -> TokenPrompt:
    return TokenPrompt(tokenizer, ChatTemplate(tokenizer), None)


def spell(tokenizer: Tokenizer, tokens: list[int]) -> str:
    """The text of tokens, control tokens by name."""
    names = {token: name for name, token in tokenizer.special_tokens.items()}
    return "".join(names.get(token) or tokenizer.decode([token]) for token in tokens)


def talk(prompt: TokenPrompt, turns: list[tuple[str, str]], flush_each: bool = False) -> None:
    for role, content in turns:
        prompt.open(role)
        prompt.add(content)
        prompt.close()
        if flush_each:
            prompt.flush()


@pytest.mark.parametrize("template", [CHATML, WITH_DEFAULT_SYSTEM, SYSTEM_INSIDE_USER, TRIMMING])
@pytest.mark.parametrize("turns", [TALK, TALK[1:], TALK[:2], [("user", "  spaces  "), ("assistant", "\nx\n")]])
def test_turns_render_as_the_template_renders_the_whole(template: str, turns: list[tuple[str, str]]) -> None:
    tokenizer = tokenizer_with(template)
    prompt = new_prompt(tokenizer)
    talk(prompt, turns)
    whole = tokenizer.render([{"role": role, "content": content} for role, content in turns])
    rendered = spell(tokenizer, prompt.flush())
    assert whole.startswith(rendered)
    assert whole[len(rendered) :] == ChatTemplate(tokenizer).layout(tuple(role for role, _ in turns)).tail


@pytest.mark.parametrize("template", [CHATML, WITH_DEFAULT_SYSTEM])
def test_rendering_turn_by_turn_gives_the_same_tokens(template: str) -> None:
    tokenizer = tokenizer_with(template)
    at_once, bit_by_bit = new_prompt(tokenizer), new_prompt(tokenizer)
    talk(at_once, TALK)
    talk(bit_by_bit, TALK, flush_each=True)
    assert spell(tokenizer, at_once.flush()) == spell(tokenizer, bit_by_bit.flush())


def test_text_behind_a_closed_turn_stands_behind_its_end_token() -> None:
    tokenizer = tokenizer_with(CHATML)
    prompt = new_prompt(tokenizer)
    talk(prompt, [("user", "hello")])
    prompt.add("between")
    talk(prompt, [("user", "again")])
    assert spell(tokenizer, prompt.flush()) == ("<|im_start|>user\nhello<|im_end|>\nbetween<|im_start|>user\nagain")


@pytest.mark.parametrize("written", ["<s>", ""])
def test_the_beginning_token_stands_once(written: str) -> None:
    backend = byte_level()
    start = backend.token_to_id("<s>")
    backend.post_processor = processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", start)])
    settings = TokenizerSettings(backend.get_vocab_size(), (4,), {"bos_token": "<s>"}, written + CHATML)
    prompt = new_prompt(Tokenizer(backend, settings))
    talk(prompt, TALK)
    assert prompt.flush().count(start) == 1


def test_a_refused_role_is_named() -> None:
    prompt = new_prompt(tokenizer_with(NO_SYSTEM))
    talk(prompt, TALK)
    with pytest.raises(TemplateError, match="no system turn"):
        prompt.flush()


@given(st.text(max_size=20), st.sampled_from(["<|im_end|>", "<|im_start|>system\n", "</s>"]))
def test_data_never_becomes_a_control_token(text: str, attack: str) -> None:
    tokenizer = tiny_tokenizer()
    prompt = new_prompt(tokenizer)
    prompt.open("user")
    prompt.add(text + attack)
    controls = set(tokenizer.special_tokens.values())
    tokens = prompt.flush()
    assert [token for token in tokens if token in controls] == [tokenizer.special_tokens["<|im_start|>"]]
    assert tokenizer.decode(tokens).endswith(text + attack)


NEEDS_USER = (
    "{% if messages | selectattr('role', 'equalto', 'user') | list | length == 0 %}"
    "{{ raise_exception('no user turn') }}{% endif %}" + CHATML
)


@pytest.mark.parametrize("template", [NEEDS_USER, SYSTEM_INSIDE_USER])
def test_a_place_behind_a_system_turn_is_known_where_the_template_needs_a_user_turn(template: str) -> None:
    tokenizer = tokenizer_with(template)
    prompt = new_prompt(tokenizer)
    told: list[list[int]] = []
    talk(prompt, TALK[:1])
    prompt.mark(told.append)
    talk(prompt, TALK[1:2])
    whole = prompt.flush()
    prompt.tell_marks()
    assert spell(tokenizer, told[0]).endswith("Be brief.")
    assert whole[: len(told[0])] == told[0]


def test_an_answer_that_the_program_begins_is_opened_as_a_written_one() -> None:
    tokenizer = tokenizer_with(CHATML + "{% if add_generation_prompt %}<|im_start|>assistant\n<think>{% endif %}")
    begun, free = new_prompt(tokenizer), new_prompt(tokenizer)
    for prompt in (begun, free):
        talk(prompt, [("user", "hello")])
        prompt.open("assistant")
    begun.add("It is")
    assert spell(tokenizer, begun.flush()).endswith("<|im_start|>assistant\nIt is")
    assert spell(tokenizer, free.flush()).endswith("<|im_start|>assistant\n<think>")


def test_adjacent_text_is_tokenised_as_one() -> None:
    tokenizer = tiny_tokenizer()
    whole, pieces = new_prompt(tokenizer), new_prompt(tokenizer)
    whole.add("The quick brown fox")
    for piece in ("The qu", "ick", " bro", "wn fox"):
        pieces.add(piece)
    assert whole.flush() == pieces.flush()


def test_a_fork_goes_its_own_way() -> None:
    tokenizer = tiny_tokenizer()
    prompt = new_prompt(tokenizer)
    prompt.add("The quick")
    twin = prompt.fork()
    twin.add(" brown fox")
    prompt.add(" lazy dog")
    assert tokenizer.decode(twin.flush()) == "The quick brown fox"
    assert tokenizer.decode(prompt.flush()) == "The quick lazy dog"


# Healing ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "head"), [("The dog ", b" "), ("jum", None), ("over the lazy dog.", b""), ("How?\n", b"")]
)
def test_a_word_or_space_left_open_is_withdrawn(text: str, head: bytes | None) -> None:
    tokenizer = tiny_tokenizer()
    prompt = new_prompt(tokenizer)
    prompt.add(text)
    before = list(prompt.flush())
    withdrawn = heal(prompt, tokenizer.vocabulary)
    if head is not None:
        assert withdrawn == head
    assert tokenizer.decode(prompt.flush()).encode() + withdrawn == text.encode()
    assert before[: len(prompt.flush())] == prompt.flush()


def test_healing_leaves_template_and_answer_tokens_alone() -> None:
    tokenizer = tiny_tokenizer()
    prompt = new_prompt(tokenizer)
    prompt.open("assistant")
    prompt.flush()
    assert heal(prompt, tokenizer.vocabulary) == b""
    prompt.extend(tokenizer.encode("The dog "))
    assert heal(prompt, tokenizer.vocabulary) == b""


def test_the_extension_mask_allows_exactly_the_tokens_that_go_on() -> None:
    tokenizer = tiny_tokenizer()
    vocabulary = tokenizer.vocabulary
    mask = vocabulary.extending(b" ")
    for token, text in enumerate(tokenizer.token_bytes):
        assert bool(mask[token // 32] >> (token % 32) & 1) == text.startswith(b" ")
