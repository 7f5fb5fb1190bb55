"""What a constraint on model output answers, whoever serves it.

A `Constraint` is compiled once for one tokenizer and shared; `start()` gives a `State`, one a running answer.
"""

from typing import Protocol

from promptlang.grammar.vocabulary import Mask, Vocabulary


class State(Protocol):
    """Where one answer stands under its constraint."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Whose tokens."""

    def mask(self) -> Mask:
        """The tokens that may come now. End tokens are never set: `can_end` says whether the answer may stop here.

        Never empty unless `can_end()`. The array belongs to the caller.
        """

    def forced(self) -> list[int]:
        """Tokens that must come now whatever the model says (jump-forward), as the tokenizer would tokenise the whole;
        empty where there is a choice. Does not advance."""

    def can_end(self) -> bool:
        """Whether what was written so far is a whole value."""

    def is_done(self) -> bool:
        """Whether the value is whole and nothing can follow it."""

    def advance(self, token: int) -> None:
        """Take one token.

        Raises:
            ValueError: the token is not allowed here.
        """

    def rollback(self, count: int) -> None:
        """Take back the last `count` tokens."""

    def fork(self) -> "State":
        """An independent copy; cheap."""


class Constraint(Protocol):
    """A compiled constraint."""

    def start(self) -> State:
        """A new state, before the first token."""
