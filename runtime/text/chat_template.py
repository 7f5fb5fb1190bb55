"""The literal text a chat template puts around messages, found by rendering it.

A template is opaque: the only sure way to know what it writes before, between and after messages is to render marked
messages and look.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

from promptlang.runtime.text.template import TemplateRefusedError

_OPEN, _CLOSE = "7301946{:06}5820937", "6091375{:06}2849017"
"""What marks contents: digits, for there is no escape that writes them otherwise."""
_PROBE = "\"'\\\n<>&é"
"""What a template that escapes contents would write otherwise."""
_NEWLINES, _SPACE = "\n" * 5, "\u2003"
"""White space around marked contents: more newlines than a template writes itself, and a space that none writes."""
_ANY_NEWLINES, _ANY_SPACE = r"((?:\n|\\n){5})", rf"({_SPACE}|\\u2003)"
"""As they stand, and as JSON writes them."""
_MARKED = re.compile(
    rf"(?:{_ANY_NEWLINES}?{_ANY_SPACE})?7301946(?P<at>\d{{6}})5820937(.*?)6091375(?P=at)2849017(?:{_ANY_SPACE}{_ANY_NEWLINES}?)?",
    re.DOTALL,
)


class Renderer(Protocol):
    """Anything that renders messages by a model's own template (a Tokenizer does)."""

    def render(
        self,
        messages: list[dict[str, str]],
        add_generation_prompt: bool = False,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        """The rendered text; raises TemplateRefusedError where the template can't take the messages."""


class TemplateError(Exception):
    """The template can't take these messages; `str()` says which and why."""


@dataclass(frozen=True)
class Place:
    """What a template does to a message's content at one place.

    Attributes:
        before: the characters that it strips from the beginning, as `str.lstrip` takes them: None for white space.
        after: those that it strips from the end.
        escapes: whether it writes other characters than it is given.
    """

    before: str | None = ""
    after: str | None = ""
    escapes: bool = False


@dataclass(frozen=True)
class Layout:
    """A rendered conversation.

    Attributes:
        parts: literal texts, and between them the numbers of the messages whose contents stand there, in the order in
            which the template writes them.
        places: what it does to the content of each message.
    """

    parts: tuple[str | int, ...]
    places: tuple[Place, ...]

    @property
    def end(self) -> int:
        """How many of its parts there are up to the last content."""
        return max((at + 1 for at, part in enumerate(self.parts) if isinstance(part, int)), default=0)

    @property
    def tail(self) -> str:
        """The literal text behind the last content."""
        return "".join(part for part in self.parts[self.end :] if isinstance(part, str))


class ChatTemplate:
    """What a template writes around the contents of messages, by their roles alone.

    Args:
        renderer: renders by the template.
        options: more that the template may name, such as `enable_thinking`.
    """

    def __init__(self, renderer: Renderer, options: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._renderer = renderer
        self._options = options
        self.layout = lru_cache(maxsize=1024)(self._layout)
        self.before_answer = lru_cache(maxsize=1024)(self._before_answer)

    def _layout(self, roles: tuple[str, ...], asks: bool = False) -> Layout:
        """How a conversation is written.

        Args:
            roles: the messages' roles, in order.
            asks: whether the template's generation prompt follows.

        Raises:
            TemplateError: the template refuses the roles, drops a content, or writes it in an unknown way.
        """
        layout = self._marked_layout(roles, f"{_NEWLINES}{_SPACE}", asks)
        doubtful = [
            at for at, place in enumerate(layout.places) if place.escapes and (place.before, place.after) != ("", "")
        ]
        if doubtful and self._marked_layout(roles, "", asks).parts != layout.parts:
            raise TemplateError(
                f"the model's chat template rewrites the white space of a {roles[doubtful[0]]} message in "
                f"{' → '.join(roles)} in a way that can't be told from its own text"
            )
        return layout

    def _marked_layout(self, roles: tuple[str, ...], space: str, asks: bool) -> Layout:
        """The layout of marked contents with white space before them, and the same the other way round behind."""
        contents = [f"{space}{_OPEN.format(at)}{_PROBE}{_CLOSE.format(at)}{space[::-1]}" for at in range(len(roles))]
        rendered = self._render(roles, contents, asks)
        parts: list[str | int] = []
        places: dict[int, Place] = {}
        at = 0
        for match in _MARKED.finditer(rendered):
            newlines, space, index, content, space_after, newlines_after = match.groups()
            places[int(index)] = Place(
                _stripped(newlines, space), _stripped(newlines_after, space_after), content != _PROBE
            )
            parts += [rendered[at : match.start()], int(index)]
            at = match.end()
        dropped = next((role for at, role in enumerate(roles) if at not in places), None)
        if dropped is not None:
            raise TemplateError(
                f"the model's chat template drops a {dropped} message in {' → '.join(roles)}, or writes something else "
                "for it"
            )
        return Layout((*parts, rendered[at:]), tuple(places[at] for at in range(len(roles))))

    def _before_answer(self, roles: tuple[str, ...]) -> Layout:
        """How a conversation is written up to the place where the model's answer begins.

        A template without a generation prompt opens the turn as it does before a written answer; but white space
        alone is the model's to write.

        Args:
            roles: of the messages before the answer.

        Raises:
            TemplateError: the template refuses the roles, or drops a content.
        """
        try:
            asked, silent = self.layout(roles, asks=True), self.layout(roles)
        except TemplateError:
            return self._before_written(roles)
        if asked.parts != silent.parts:
            return asked
        try:
            written = self._before_written(roles)
        except TemplateError:
            return asked
        return asked if written.tail.removeprefix(asked.tail).strip() == "" else written

    def _before_written(self, roles: tuple[str, ...]) -> Layout:
        written = self.layout((*roles, "assistant"))
        return Layout(written.parts[: written.parts.index(len(roles))], written.places[:-1])

    def escaped(self, roles: tuple[str, ...], index: int, text: str) -> str:
        """A text as the template writes it inside the content of a message.

        Args:
            roles: the messages' roles, in order.
            index: of the message.
            text: a part of its content.

        Raises:
            TemplateError: the template refuses this text.
        """
        first, last = _OPEN.format(index), _CLOSE.format(index)
        contents = [first + text + last if at == index else _OPEN.format(at) for at in range(len(roles))]
        rendered = self._render(roles, contents, asks=False)
        start, end = rendered.find(first), rendered.rfind(last)
        if min(start, end) < 0:
            raise TemplateError(f"the model's chat template drops a part of a {roles[index]} message: {text!r}")
        return rendered[start + len(first) : end]

    def _render(self, roles: tuple[str, ...], contents: list[str], asks: bool) -> str:
        messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
        try:
            return self._renderer.render(messages, asks, self._options)
        except TemplateRefusedError as error:
            raise TemplateError(f"the model's chat template refuses {' → '.join(roles)}: {error}") from error


def _stripped(newlines: str | None, space: str | None) -> str | None:
    """The characters that were stripped of the white space around a content, given what is left of it."""
    if space is None:
        return None
    return "\n" if newlines is None else ""
