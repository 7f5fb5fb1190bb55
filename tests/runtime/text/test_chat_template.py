"""What a template does is found once, and for that template alone."""

import pytest

from promptlang.runtime.text.chat_template import ChatTemplate


class Renderer:
    """A template that counts how often it is rendered."""

    def __init__(self, trims: bool) -> None:
        self.trims = trims
        self.renders = 0

    def render(self, messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
        self.renders += 1
        contents = (message["content"] for message in messages)
        return "".join(f"<{content.strip() if self.trims else content}>" for content in contents)


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_templates_in_one_process_are_told_apart_and_asked_once(order: tuple[bool, bool]) -> None:
    renderers = [Renderer(trims) for trims in order]
    templates = [ChatTemplate(renderer) for renderer in renderers]
    for _ in range(3):
        assert tuple(template.trims for template in templates) == order
    assert [renderer.renders for renderer in renderers] == [1, 1]


def test_a_list_of_roles_is_rendered_once() -> None:
    renderer = Renderer(trims=False)
    template = ChatTemplate(renderer)
    for _ in range(3):
        assert template.frame(("user", "assistant")) == ("<", "><", ">")
    assert renderer.renders == 1
