"""How drafts held: learnt from each step, for drafts that were found in the same way."""

from bisect import bisect_right
from collections import OrderedDict
from typing import Literal, NamedTuple

LENGTHS = (1, 2, 3, 5, 9, 17)
"""From how many agreeing tokens on a draft is more likely to hold than one of fewer."""

FIRST_GUESSES = (0.2, 0.35, 0.5, 0.7, 0.8, 0.9)
"""How likely a token is to hold before anything is known, for each of these lengths."""

MODEL_GUESS, MODEL_WEIGHT = 0.9, 10.0
"""The same of what a drafting model writes: known of weights in four bits, and not of the program's text."""

WEIGHT = 2.0
"""Tokens that a first guess counts as."""

MEMORY = 0.9
"""What is left of an observation with each further one: some ten drafts are remembered."""

RECOVERY = 1 / 1024
"""Share by which what was learnt goes back to the first guess where nothing is seen, so that a try comes back."""

KINDS = 1 << 12
"""Kinds of drafts of which is remembered how they held; the one that was longest unused goes first."""

Source = Literal["text", "answers"]
"""Where a draft was found: in the text of the answer and its prompt, or in other answers."""


class Acceptance:
    """How drafts of one kind held.

    Args:
        guess: how likely a token is to hold, before anything is known.
        weight: tokens that this counts as.
    """

    def __init__(self, guess: float, weight: float = WEIGHT) -> None:
        self._first = (weight * guess, weight * (1 - guess))
        self._held, self._failed = self._first

    @property
    def chance(self) -> float:
        """How likely a token is to hold where those before it have."""
        return self._held / (self._held + self._failed)

    def saw(self, held: int, failed: int) -> None:
        """So many tokens of a draft held, and so many didn't."""
        self._held = MEMORY * self._held + held
        self._failed = MEMORY * self._failed + failed

    def rest(self) -> None:
        """Nothing was seen."""
        self._held += RECOVERY * (self._first[0] - self._held)
        self._failed += RECOVERY * (self._first[1] - self._failed)


class _Kind(NamedTuple):
    """Drafts that are alike: of one program, found in one place, by about as many agreeing tokens."""

    program: str
    source: Source
    length_class: int


class Acceptances:
    """Those of all kinds of found drafts."""

    def __init__(self) -> None:
        self._kinds: OrderedDict[_Kind, Acceptance] = OrderedDict()

    def of(self, program: str, source: Source, length: int) -> Acceptance:
        """That of drafts like one.

        Args:
            program: whose prompts the answer's is one of.
            source: where it was found.
            length: by how many agreeing tokens.
        """
        length_class = bisect_right(LENGTHS, length) - 1
        kind = _Kind(program, source, length_class)
        acceptance = self._kinds.setdefault(kind, Acceptance(FIRST_GUESSES[length_class]))
        self._kinds.move_to_end(kind)
        if len(self._kinds) > KINDS:
            self._kinds.popitem(last=False)
        return acceptance
