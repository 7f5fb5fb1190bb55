"""What attention needs to know of a sequence in a batch."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True)
class AttentionLane:
    """New tokens of one sequence: they see the context in full, and one another causally.

    Attributes:
        slots: int32 [new tokens], where their keys and values go.
        context: the slots of all positions before, as (start, length) runs in position order. Lanes that share a prefix
            name the very same leading runs: that is how a plan finds what they share.
    """

    slots: npt.NDArray[np.int32]
    context: tuple[tuple[int, int], ...]

    @cached_property
    def start(self) -> int:
        """The position of the first new token."""
        return sum(length for _, length in self.context)
