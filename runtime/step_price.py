"""What drafts cost a step, and how much of one to take."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from promptlang.runtime.models.pass_costs import PassCosts

HOST_SHARE = 0.02
"""Share of a pass that a drafted token takes beside the pass: to be found, planned and dropped."""

Numbers = npt.NDArray[np.float64]


class Amount(NamedTuple):
    """How much to draft.

    Attributes:
        size: tokens, or passes that write them; 0 where none of it is likely to pay.
        gain: how many times as fast the step's answers are likely to be written; 1 with nothing.
    """

    size: int
    gain: float


NOTHING = Amount(0, 1.0)


class StepPrice:
    """The price of a step's drafts.

    Args:
        costs: of the model's passes.
        rows: of the pass without drafts.
        writers: answers that get a token from it.
        room: how many rows the pass may have.

    Attributes:
        rows: of the pass, with the drafts taken so far.
        room: as given.
    """

    def __init__(self, costs: PassCosts, rows: int, writers: int, room: int) -> None:
        self._costs = costs
        self._writers = writers
        self.rows = rows
        self.room = room

    @property
    def can_pay(self) -> bool:
        """Whether a draft that surely holds would be worth its row."""
        return self._writers > 0 and self.rows < self.room and bool(self._price(1)[0] < 1)

    def best_length(self, chance: float, most: int) -> Amount:
        """How many tokens of a draft to take.

        Args:
            chance: how likely each is to hold where those before it have.
            most: tokens there are.
        """
        return self._best(_held(chance, most), self._price(most))

    def best_passes(self, chance: float, jobs: int, most: int, drafting: PassCosts, reads: int) -> Amount:
        """How many passes of a drafting model to make, each of which writes a token of each of some answers.

        Args:
            chance: how likely each token is to hold where those before it have.
            jobs: answers that are written ahead.
            most: passes.
            drafting: costs of these passes, in the unit of the model's.
            reads: rows of the first one, which has to read what the answers have come to hold.
        """
        if most <= 0:
            return NOTHING
        first, later = drafting.of(np.array([reads, jobs])).tolist()
        writing = (first + later * np.arange(most)) * self._a_second
        return self._best(jobs * _held(chance, most), self._price(jobs * most)[jobs - 1 :: jobs] + writing)

    @property
    def _a_second(self) -> float:
        """Tokens that passes without drafts write in it."""
        return self._writers / float(self._costs.of(np.array([self._writers]))[0])

    def _price(self, most: int) -> Numbers:
        """What 1 to `most` further rows cost, in tokens that would be written in the same time."""
        seconds = self._costs.of(self.rows + np.arange(most + 1))
        price: Numbers = (seconds[1:] - seconds[0]) * self._a_second
        return price + HOST_SHARE * np.arange(1, most + 1)

    def _best(self, held: Numbers, price: Numbers) -> Amount:
        gain = (self._writers + held) / (self._writers + price)
        best = int(gain.argmax())
        return Amount(best + 1, float(gain[best])) if gain[best] > 1 else NOTHING


def _held(chance: float, most: int) -> Numbers:
    """How many tokens of a draft of 1 to `most` are likely to hold."""
    held: Numbers = np.cumsum(chance ** np.arange(1, most + 1))
    return held
