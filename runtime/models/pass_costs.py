"""What a pass of the model costs by its rows: measured once on a machine, and kept."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.slots import SlotRun
from promptlang.runtime.models.batch import build_batch
from promptlang.runtime.models.measurements import Measurements
from promptlang.runtime.models.model import Model, attention_of

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Row counts that are tried."""

CONTEXT = 256
"""Tokens before them."""

ROUNDS = 4
"""How often each is tried; the least time counts, for what disturbs a pass only adds to it."""

PATIENCE = 4.0
"""Seconds after which no further round begins."""

Clock = Callable[[], float]


ALIKE = 1e-3
"""Logits that differ by less than this share of their standard deviation are the same but for the last bits of
float32."""


@dataclass(frozen=True)
class PassCosts:
    """Seconds of a pass by its rows, or any other unit: only ratios matter.

    Attributes:
        rows: row counts, growing, at least two.
        seconds: of each, none less than the one before.
        alike_rows: up to so many rows, what a pass says of a token is what it would say of that token alone, but for
            the last bits of float32; beyond, weights have another form, or sums are rounded otherwise. None: always.
    """

    rows: tuple[int, ...] = (1, 32)
    seconds: tuple[float, ...] = (1.0, 2.0)
    alike_rows: int | None = None

    def of(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """Of these row counts: between two that were measured on the line through them, and beyond on one as steep as
        that through the first and the last."""
        slope = (self.seconds[-1] - self.seconds[0]) / (self.rows[-1] - self.rows[0])
        beyond = np.maximum(0, rows - self.rows[-1])
        return np.interp(rows, self.rows, self.seconds) + slope * beyond


def kept_costs(measurements: Measurements, model: Model) -> PassCosts:
    """`measured_costs`, unless they are known from an earlier start.

    Args:
        measurements: where they are kept.
        model: whose.
    """
    kept = measurements.kept(
        "pass_costs", f"{model.shape} {model.weights}", lambda: asdict(measured_costs(model)), _is_costs
    )
    return PassCosts(tuple(kept["rows"]), tuple(kept["seconds"]), kept["alike_rows"])


def _is_costs(value: Any) -> bool:
    try:
        rows, seconds, alike = list(value["rows"]), list(value["seconds"]), value["alike_rows"]
    except (TypeError, KeyError):
        return False
    are_seconds = all(isinstance(one, float) and 0 < one < 3600 for one in seconds) and seconds == sorted(seconds)
    return rows == list(ROWS) and len(seconds) == len(ROWS) and are_seconds and (alike is None or alike in ROWS)


@torch.inference_mode()
def measured_costs(model: Model, clock: Clock = perf_counter) -> PassCosts:
    """Time passes of a few tokens behind a short context, with the logits of all of them.

    Args:
        model: whose.
        clock: tells seconds.
    """
    pool = KvPool(model.shape, CONTEXT + ROWS[-1], model.dtype, model.device)
    _passed(model, pool, 0, CONTEXT)
    began, seconds = clock(), np.full(len(ROWS), np.inf)
    alone = _passed(model, pool, CONTEXT, 1)  # what a first pass makes ready isn't part of any other
    least = ALIKE * float(alone.std())
    alike = [rows for rows in ROWS if float((_passed(model, pool, CONTEXT, rows) - alone).abs().max()) < least]
    for _ in range(ROUNDS):
        seconds = np.minimum(seconds, [_seconds(model, pool, rows, clock) for rows in ROWS])
        if clock() - began > PATIENCE:
            break
    # What is slower for fewer rows is noise, for rows can be added that nobody looks at.
    settled = np.minimum.accumulate(seconds[::-1])[::-1]
    first_other = next((at for at, rows in enumerate(ROWS) if rows not in alike), None)
    return PassCosts(ROWS, tuple(settled.tolist()), None if first_other is None else ROWS[first_other - 1])


def _seconds(model: Model, pool: KvPool, rows: int, clock: Clock) -> float:
    started = clock()
    _passed(model, pool, CONTEXT, rows)
    return clock() - started


def _passed(model: Model, pool: KvPool, start: int, rows: int) -> torch.Tensor:
    """Let some tokens from a position on go through the model; gives the logits of the first, float32 [vocabulary]."""
    slots = np.arange(start, start + rows, dtype=np.int32)
    tokens = (slots % model.shape.vocab_size).tolist()
    lane = Lane(tokens, start, slots, (SlotRun(0, start),) if start else (), wants="all")
    batch = build_batch([lane], attention_of(model), model.shape.windows)
    return model.forward(batch, pool).whole()[0].cpu()
