"""What attention needs to know of a sequence in a batch."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt


class AttentionLane(Protocol):
    """New tokens of one sequence: they see the context in full, and one another causally."""

    @property
    def slots(self) -> npt.NDArray[np.int32]:
        """Where the new tokens' keys and values are; int32 [new tokens]."""

    @property
    def context(self) -> Sequence[tuple[int, int]]:
        """The slots of all positions before, as (start, length) runs in position order."""
