"""What was said in a prompt, piece by piece: a branch's `.text` and `.logprob` are of those since its fork."""

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Said:
    """A piece of what was added to a prompt. Prompts that were forked share the pieces before the fork.

    Attributes:
        before: the piece before it; None where the prompt begins.
        text: without markup.
        logprob: natural log-probability of a text that the model wrote, None where nobody asked; 0 of all other text.
        turn: the role of the turn that begins here; empty where a turn ends.
        depth: how many pieces are before it.
    """

    before: "Said | None" = None
    text: str = ""
    logprob: float | None = 0.0
    turn: str | None = None
    depth: int = 0

    def since(self, start: "Said") -> "list[Said]":
        """The pieces up to this one, behind the last that it shares with `start`."""
        pieces: list[Said] = []
        here: Said | None = self
        there: Said | None = start
        while here is not None and here is not there:
            if there is None or here.depth >= there.depth:
                pieces.append(here)
                here = here.before
            else:
                there = there.before
        return pieces[::-1]


@dataclass(frozen=True)
class Message:
    """A turn of a conversation, or, where the role is None, text outside of turns."""

    role: str | None
    text: str


def messages_of(pieces: Iterable[Said]) -> list[Message]:
    """Pieces as turns; text between turns is a message without a role."""
    messages: list[Message] = []
    role, text = None, ""
    for piece in (*pieces, Said(turn="")):
        if piece.turn is not None:
            if role or text:
                messages.append(Message(role, text))
            role, text = piece.turn or None, ""
        text += piece.text
    return messages


def text_of(pieces: Iterable[Said]) -> str:
    """Pieces as one text; each turn begins a line."""
    text = ""
    for piece in pieces:
        if piece.turn and text and not text.endswith("\n"):
            text += "\n"
        text += piece.text
    return text


def logprob_of(pieces: Iterable[Said]) -> float | None:
    """The log-probability of all that the model wrote; None where that of a piece is not known."""
    logprobs = [piece.logprob for piece in pieces]
    return None if None in logprobs else sum(filter(None, logprobs), 0.0)
