"""The literal text a chat template puts around messages, found by rendering it.

A template is opaque: the only sure way to know what it writes before, between and after messages is to render marked
messages and look.
"""

from functools import cached_property, lru_cache
from typing import Protocol

from promptlang.runtime.text.template import TemplateRefusedError

_MARKS = "\ue000{}\ue001"


class Renderer(Protocol):
    """Anything that renders messages by a model's own template (a Tokenizer does)."""

    def render(self, messages: list[dict[str, str]], add_generation_prompt: bool = False) -> str:
        """The rendered text; raises TemplateRefusedError where the template can't take the messages."""


class TemplateError(Exception):
    """The template can't take these messages; `str()` says which and why."""


class ChatTemplate:
    """What stands around the contents of a list of messages, by their roles alone."""

    def __init__(self, renderer: Renderer) -> None:
        self._renderer = renderer
        self.frame = lru_cache(maxsize=1024)(self._frame)

    def _frame(self, roles: tuple[str, ...]) -> tuple[str, ...]:
        """The literal text before each message's content, and last what follows the last one.

        Args:
            roles: the messages' roles, in order.

        Returns:
            `len(roles) + 1` strings; joined with the contents between, they are the rendered conversation.

        Raises:
            TemplateError: the template refuses the roles, or drops a content.
        """
        marks = [_MARKS.format(index) for index in range(len(roles))]
        messages = [{"role": role, "content": mark} for role, mark in zip(roles, marks, strict=True)]
        try:
            rest = self._renderer.render(messages)
        except TemplateRefusedError as error:
            raise TemplateError(f"the model's chat template refuses {' → '.join(roles)}: {error}") from error
        frame = []
        for role, mark in zip(roles, marks, strict=True):
            literal, found, rest = rest.partition(mark)
            if not found:
                raise TemplateError(f"the model's chat template drops a {role} message in {' → '.join(roles)}")
            frame.append(literal)
        return (*frame, rest)

    @cached_property
    def trims(self) -> bool:
        """Whether the template strips white space around contents."""
        mark = _MARKS.format(0)
        rendered = self._renderer.render([{"role": "user", "content": f"  {mark}  "}])
        return f"  {mark}  " not in rendered
