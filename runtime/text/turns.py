"""Turns as they are sent: what is new of a conversation is rendered, what was sent stays as it is.

A turn of the assistant that the model begins is opened by the template's own generation prompt; one that the program
begins, as the template opens a written answer.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from promptlang.runtime.text.chat_template import ChatTemplate, Layout, Place, TemplateError
from promptlang.runtime.text.markup import Run


@dataclass(frozen=True)
class Open:
    """A turn of `role` begins."""

    role: str


@dataclass(frozen=True)
class Close:
    """The turn ends."""


@dataclass(frozen=True)
class Text:
    """Text that is data."""

    text: str


@dataclass(frozen=True)
class Mark:
    """A place; `tell` gets the tokens before it."""

    tell: Callable[[list[int]], None]


Piece: TypeAlias = Open | Close | Text | Mark


@dataclass(frozen=True)
class Sent:
    """What was rendered of a conversation.

    Attributes:
        roles: of its turns.
        is_closed: whether the last turn has ended.
        has_tail: whether what the template writes behind the last turn is written.
        is_empty: whether nothing is in the last turn yet.
        place: what the template does to the last turn's text.
    """

    roles: tuple[str, ...] = ()
    is_closed: bool = False
    has_tail: bool = False
    is_empty: bool = True
    place: Place = Place()  # noqa: RUF009 - frozen


@dataclass
class _Turn:
    """A turn to render; without a role, text that stands outside of turns or goes on with the last one."""

    role: str | None
    content: list[Text | Mark] = field(default_factory=list)
    is_closed: bool = False

    @property
    def is_blank(self) -> bool:
        return not any(isinstance(piece, Text) and piece.text.strip() for piece in self.content)


class TurnWriter:
    """Renders pieces of a conversation.

    Args:
        template: the model's chat template.
        sent: what was rendered before.

    Attributes:
        runs: the text of the pieces.
        marks: each with how many of the runs lie before it.
        sent: what is rendered now.
    """

    def __init__(self, template: ChatTemplate, sent: Sent) -> None:
        self.runs: list[Run] = []
        self.marks: list[tuple[Mark, int]] = []
        self.sent = sent
        self._template = template

    def write(self, pieces: Sequence[Piece]) -> None:
        """Render pieces.

        Raises:
            TemplateError: the template can't take the turns.
        """
        turns: list[_Turn] = []
        for turn in _turns(pieces, self.sent.is_closed):
            if turn.role is not None:
                turns.append(turn)
                continue
            self._write_turns(turns)
            self._go_on(turn)
            turns = []
        self._write_turns(turns)

    def _go_on(self, more: _Turn) -> None:
        """Write what stands in the last turn, or behind it, where it is closed."""
        if self.sent.is_closed and self.sent.roles and not self.sent.has_tail and not _is_silent(more.content):
            self.runs.append(Run(self._template.layout(self.sent.roles).tail, literal=True))
            self.sent = replace(self.sent, has_tail=True, place=Place())
        self._write_content(more, self.sent.roles, len(self.sent.roles) - 1, self.sent.place)
        self.sent = replace(self.sent, is_closed=self.sent.is_closed or more.is_closed)

    def _write_turns(self, turns: Sequence[_Turn]) -> None:
        """Write new turns, up to the last one's content."""
        if not turns:
            return
        last = turns[-1]
        roles = (*self.sent.roles, *(turn.role for turn in turns if turn.role is not None))
        is_asked = last.role == "assistant" and not last.is_closed and last.is_blank
        layout = self._template.before_answer(roles[:-1]) if is_asked else self._template.layout(roles)
        known = len(self.sent.roles)
        parts = self._new_parts(layout, roles, is_asked)
        for part in parts:
            if isinstance(part, str):
                self.runs.append(Run(part, literal=True))
            elif part >= known:
                self.sent = replace(self.sent, is_empty=True)
                self._write_content(turns[part - known], roles, part, layout.places[part])
        place = Place() if is_asked else layout.places[-1]
        if is_asked:
            self.sent = replace(self.sent, is_empty=True)
            self._write_content(last, roles, len(roles) - 1, place)
        self.sent = Sent(roles, last.is_closed, False, self.sent.is_empty, place)

    def _new_parts(self, layout: Layout, roles: tuple[str, ...], is_asked: bool) -> list[str | int]:
        """The parts of a layout that were not sent yet."""
        known = len(self.sent.roles)
        parts = list(layout.parts if is_asked else layout.parts[: layout.end])
        if not known:
            return parts
        new = parts[_behind(parts, known - 1) :]
        moved = {part for part in new if isinstance(part, int) and part < known}
        if moved:
            new = self._without(moved, roles, is_asked) or new
        if self.sent.has_tail and isinstance(new[0], str):
            new[0] = new[0].removeprefix(self._template.layout(self.sent.roles).tail)
        return new

    def _without(self, moved: set[int], roles: tuple[str, ...], is_asked: bool) -> list[str | int]:
        """The new parts of a conversation where messages were sent already that the template would write only now;
        nothing where it refuses the others alone."""
        kept = [at for at in range(len(roles)) if at not in moved]
        others = tuple(roles[at] for at in kept)
        try:
            layout = self._template.before_answer(others[:-1]) if is_asked else self._template.layout(others)
        except TemplateError:
            return []
        parts = list(layout.parts if is_asked else layout.parts[: layout.end])
        new = parts[_behind(parts, kept.index(len(self.sent.roles) - 1)) :]
        return [kept[part] if isinstance(part, int) else part for part in new]

    def _write_content(self, turn: _Turn, roles: tuple[str, ...], index: int, place: Place) -> None:
        texts = [piece.text if isinstance(piece, Text) else "" for piece in turn.content]
        if self.sent.is_empty:
            texts = _stripped(texts, place.before)
        if turn.is_closed:
            texts = [text[::-1] for text in reversed(_stripped([text[::-1] for text in reversed(texts)], place.after))]
        for piece, text in zip(turn.content, texts, strict=True):
            if isinstance(piece, Mark):
                self.marks.append((piece, len(self.runs)))
            elif text:
                written = self._template.escaped(roles, index, text) if place.escapes else text
                self.runs.append(Run(written, literal=False))
                self.sent = replace(self.sent, is_empty=False)


def _turns(pieces: Sequence[Piece], is_closed: bool) -> Iterator[_Turn]:
    """Pieces by the turns they stand in."""
    turn = _Turn(None)
    outside = is_closed
    for piece in pieces:
        match piece:
            case Open(role):
                yield turn
                turn, outside = _Turn(role), False
            case Close():
                turn.is_closed, outside = True, True
            case Text() if outside and turn.is_closed:
                yield turn
                turn = _Turn(None, [piece])
            case _:
                turn.content.append(piece)
    yield turn


def _is_silent(content: Sequence[Text | Mark]) -> bool:
    return not any(isinstance(piece, Text) for piece in content)


def _behind(parts: Sequence[str | int], message: int) -> int:
    """Where the last content of a message ends."""
    return max((at + 1 for at, part in enumerate(parts) if part == message), default=0)


def _stripped(texts: Sequence[str], characters: str | None) -> list[str]:
    """Texts that follow one another, without characters at their beginning."""
    result = []
    is_beginning = True
    for text in texts:
        kept = text.lstrip(characters) if is_beginning else text
        is_beginning = is_beginning and not kept
        result.append(kept)
    return result
