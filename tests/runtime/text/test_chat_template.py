"""What a template does is found once, for that template alone, and at each place apart."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import pytest

from promptlang.runtime.prompt import TokenPrompt
from promptlang.runtime.text.chat_template import ChatTemplate, Place, TemplateError
from promptlang.runtime.text.template import ConversationTemplate

Write = Callable[[str], str]


class Renderer:
    """A template that counts how often it is rendered."""

    def __init__(self, write: Write = str) -> None:
        self.write = write
        self.renders = 0

    def render(
        self,
        messages: list[dict[str, str]],
        add_generation_prompt: bool = False,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        self.renders += 1
        return "".join(f"<{self.write(message['content'])}>" for message in messages)


class Jinja:
    """Renders by a template's source."""

    def __init__(self, source: str) -> None:
        self._template = ConversationTemplate(source, {})

    def render(
        self,
        messages: list[dict[str, str]],
        add_generation_prompt: bool = False,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        return self._template.render(messages, add_generation_prompt, options)


class Letters:
    """A tokenizer with a token a character."""

    bos_id = None

    def encode_after(self, tokens: object, runs: Any, limit: int | None = None) -> list[int]:
        return [ord(character) for run in runs for character in run.text]


def written(source: str, role: str, *texts: str) -> str:
    prompt = TokenPrompt(Letters(), ChatTemplate(Jinja(source)), None)
    prompt.open(role)
    for text in texts:
        prompt.add(text)
    prompt.close()
    prompt.add("!")
    return "".join(map(chr, prompt.flush()))


@pytest.mark.parametrize("writers", [(str, str.strip), (str.strip, str)])
def test_templates_in_one_process_are_told_apart_and_asked_once(writers: tuple[Write, Write]) -> None:
    renderers = [Renderer(write) for write in writers]
    templates = [ChatTemplate(renderer) for renderer in renderers]
    for _ in range(3):
        places = [template.layout(("user", "assistant")).places[0] for template in templates]
        assert [place.before is None for place in places] == [write is str.strip for write in writers]
    assert [renderer.renders for renderer in renderers] == [1, 1]


def test_a_list_of_roles_is_rendered_once() -> None:
    renderer = Renderer()
    template = ChatTemplate(renderer)
    for _ in range(3):
        assert template.layout(("user", "assistant")).parts == ("<", 0, "><", 1, ">")
    assert renderer.renders == 1


def test_a_conversation_takes_at_most_a_few_renders_a_turn() -> None:
    renderer = Renderer()
    prompt = TokenPrompt(Letters(), ChatTemplate(renderer), None)
    for _ in range(10):
        for role in ("user", "assistant"):
            prompt.open(role)
            prompt.add("text")
            prompt.close()
            prompt.flush()
    assert renderer.renders <= 20


@pytest.mark.parametrize(
    ("write", "place"),
    [
        (str, Place()),
        (str.strip, Place(None, None)),
        (str.lstrip, Place(None, "")),
        (lambda text: text.strip("\n"), Place("\n", "\n")),
        (lambda text: "\n" + text.lstrip("\n"), Place("\n", "")),
        (lambda text: text.replace("<", "&lt;"), Place(escapes=True)),
    ],
)
def test_what_a_template_does_to_a_content_is_seen(write: Write, place: Place) -> None:
    assert ChatTemplate(Renderer(write)).layout(("user",)).places == (place,)


def test_trimming_is_known_for_each_role() -> None:
    source = "{% for m in messages %}[{{ m.content | trim if m.role == 'user' else m.content }}]{% endfor %}"
    assert written(source, "user", "  a", "  b  ") == "[a  b]!"
    assert written(source, "tool", "  a", "  b  ") == "[  a  b  ]!"


@pytest.mark.parametrize("text", ['say "hi"\n\\ <b> & é 🙂 </s>', "  plain  ", ""])
@pytest.mark.parametrize(
    "escape",
    ["tojson", "escape", "trim | tojson", "tojson(ensure_ascii=True)", "trim | tojson(ensure_ascii=True)", "upper"],
)
def test_text_arrives_as_the_template_escapes_it(escape: str, text: str) -> None:
    source = f"{{% for m in messages %}}[{{{{ m.content | {escape} }}}}]{{% endfor %}}"
    whole = Jinja(source).render([{"role": "tool", "content": text + "'tail'"}])
    assert written(source, "tool", text, "'tail'") == whole + "!"


@pytest.mark.parametrize("rewrites", ["urlencode", "replace('\n', '<br>')", "replace('\n', ' ') | upper | indent(2)"])
def test_white_space_that_becomes_text_is_refused_and_not_taken_for_the_templates_own(rewrites: str) -> None:
    with pytest.raises(TemplateError, match="white space of a tool message"):
        written(f"{{% for m in messages %}}[{{{{ m.content | {rewrites} }}}}]{{% endfor %}}", "tool", "a\nb")


@pytest.mark.parametrize("drops", ["m.content[:4]", "m.content | length", "'none'"])
def test_a_content_that_does_not_arrive_is_named(drops: str) -> None:
    with pytest.raises(TemplateError, match="drops a tool message"):
        written(f"{{% for m in messages %}}[{{{{ {drops} }}}}]{{% endfor %}}", "tool", "a text")
