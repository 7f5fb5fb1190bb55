"""Prompts have the tokens that transformers gives a conversation with each family's own template."""

from functools import cache

import pytest
from chat_families import FAMILIES, SYSTEM_KEPT

from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.text.chat_template import ChatTemplate
from promptlang.runtime.text.tokenizer import Tokenizer

TALK = [
    ("system", "Be brief."),
    ("user", "the fox   and the dog?"),
    ("assistant", "A fox jumps."),
    ("user", "And  the dog </s>?"),
    ("assistant", "It sleeps."),
    ("user", "the end"),
    ("assistant", "Yes."),
    ("user", "Why?"),
]


@cache
def tokenizers(family: str) -> tuple[Tokenizer, object]:
    theirs = FAMILIES[family].tokenizer()
    return Tokenizer.from_transformers(theirs), theirs


def prompt_of(family: str) -> TokenPrompt:
    tokenizer, _ = tokenizers(family)
    return TokenPrompt(tokenizer, ChatTemplate(tokenizer, FAMILIES[family].options), None)


def talk(family: str, with_system: bool, turns: int) -> list[tuple[str, str]]:
    """The first so many user turns, with the answers between them; no control token is in their text."""
    if with_system and not FAMILIES[family].has_system:
        pytest.skip("the family takes no system turn")
    said = [(role, content.replace("</s>", "")) for role, content in TALK]
    return said[0 if with_system else 1 : 2 * turns]


def theirs_of(family: str, said: list[tuple[str, str]]) -> list[int]:
    _, theirs = tokenizers(family)
    messages = [{"role": role, "content": content} for role, content in said]
    start = [] if FAMILIES[family].start is None else [theirs.bos_token_id]  # type: ignore[attr-defined]
    return start + theirs.apply_chat_template(  # type: ignore[attr-defined,no-any-return]
        messages, add_generation_prompt=True, return_dict=False, **FAMILIES[family].options
    )


def spell(family: str, tokens: list[int]) -> str:
    tokenizer, _ = tokenizers(family)
    names = {token: name for name, token in tokenizer.special_tokens.items()}
    return "".join(names.get(token) or tokenizer.decode([token]) for token in tokens)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("with_system", [False, True])
@pytest.mark.parametrize("turns", [1, 2, 3, 4])
def test_a_written_conversation_has_the_ids_that_transformers_gives_it(
    family: str, with_system: bool, turns: int
) -> None:
    said = talk(family, with_system, turns)
    prompt = prompt_of(family)
    for role, content in said:
        prompt.open(role)
        prompt.add(content)
        prompt.close()
    prompt.open("assistant")
    assert spell(family, prompt.flush()) == spell(family, theirs_of(family, said))
    assert prompt.flush() == theirs_of(family, said)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("with_system", [False, True])
def test_every_call_sends_what_the_template_writes_or_keeps_what_was_sent(family: str, with_system: bool) -> None:
    tokenizer, _ = tokenizers(family)
    said = talk(family, with_system, 4)
    prompt = prompt_of(family)
    is_equal = True
    for at, (role, content) in enumerate(said):
        prompt.open(role)
        if role == "assistant":
            before = list(prompt.flush())
            is_equal = is_equal and spell(family, before) == spell(family, theirs_of(family, said[:at]))
            prompt.extend(tokenizer.encode(FAMILIES[family].answers_with + content))
            assert prompt.flush()[: len(before)] == before
        else:
            prompt.add(content)
        prompt.close()
    reason = FAMILIES[family].later
    assert is_equal == (reason is None or (reason == SYSTEM_KEPT and not with_system))
