"""What a running sequence gives to one model pass."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from promptlang.runtime.cache.slots import SlotRun


@dataclass(frozen=True)
class Lane:
    """New tokens of one sequence. They see the context in full, and one another causally.

    Attributes:
        tokens: the new tokens, at least one.
        start: position of the first of them.
        slots: int32 [tokens], where their keys and values go.
        context: the slots of all positions before `start` in position order; see `AttentionLane.context`.
        wants: whose logits are wanted: the last token's, every token's, or none.
        drafted: how many tokens at the end are a guess at what follows the others; the logits of these, and of the one
            before them, are wanted as well as the last's.
    """

    tokens: Sequence[int]
    start: int
    slots: npt.NDArray[np.int32]
    context: tuple[SlotRun, ...]
    wants: Literal["last", "all", "none"] = "last"
    drafted: int = 0

    @property
    def rows(self) -> int:
        """Of how many tokens at the end the logits are wanted."""
        return {"last": 1 + self.drafted, "all": len(self.tokens), "none": 0}[self.wants]
