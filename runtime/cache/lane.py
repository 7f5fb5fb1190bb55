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
    """

    tokens: Sequence[int]
    start: int
    slots: npt.NDArray[np.int32]
    context: tuple[SlotRun, ...]
    wants: Literal["last", "all", "none"] = "last"
