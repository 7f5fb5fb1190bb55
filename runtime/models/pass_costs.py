"""What a pass of the model costs by its rows: measured once on a machine, and kept."""

import math
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

TRIES = (1, 32, 8, 4, 2, 16, 3, 6, 12, 24)
"""Row counts that are tried, those first that tell most."""

CONTEXT = 256
"""Tokens before them."""

ROUNDS = 4
"""How often each is tried; the least time counts, for what disturbs a pass only adds to it."""

PATIENCE = 4.0
"""Seconds after which no more is tried."""

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


def kept_costs(measurements: Measurements, model: Model, on_measure: Callable[[], None] = lambda: None) -> PassCosts:
    """`measured_costs`, unless they are known from an earlier start.

    Args:
        measurements: where they are kept.
        model: whose.
        on_measure: called before they are measured, which takes some seconds.
    """

    def measured() -> dict[str, Any]:
        on_measure()
        return asdict(measured_costs(model))

    kept = measurements.kept("pass_costs", f"{model.shape} {model.weights}", measured, _is_costs)
    return PassCosts(tuple(kept["rows"]), tuple(kept["seconds"]), kept["alike_rows"])


def _is_costs(value: Any) -> bool:
    try:
        rows, seconds, alike = list(value["rows"]), list(value["seconds"]), value["alike_rows"]
        are_rows = len(rows) > 1 and rows == [tried for tried in sorted(TRIES) if tried in rows]
        are_seconds = all(0 < one < 3600 for one in seconds) and seconds == sorted(seconds)
    except (TypeError, KeyError):
        return False
    return are_rows and are_seconds and len(rows) == len(seconds) and alike in (None, *rows)


@torch.inference_mode()
def measured_costs(model: Model, clock: Clock = perf_counter) -> PassCosts:
    """Time passes of a few tokens behind a short context, with the logits of all of them.

    Args:
        model: whose.
        clock: tells seconds.
    """
    pool = KvPool(model.shape, CONTEXT + max(TRIES), model.dtype, model.device)
    _passed(model, pool, 0, CONTEXT)
    alone = _passed(model, pool, CONTEXT, 1)  # what a first pass makes ready isn't part of any other
    least = ALIKE * float(alone.std())
    began, seconds, others = clock(), dict[int, float](), set[int]()
    for rows in TRIES * ROUNDS:
        started = clock()
        if len(seconds) > 1 and started - began > PATIENCE:
            break
        logits = _passed(model, pool, CONTEXT, rows)
        seconds[rows] = min(clock() - started, seconds.get(rows, math.inf))
        if float((logits - alone).abs().max()) > least:
            others.add(rows)
    tried = sorted(seconds)
    # What is slower for fewer rows is noise, for rows can be added that nobody looks at.
    settled = np.minimum.accumulate([seconds[rows] for rows in tried[::-1]])[::-1]
    alike = max(rows for rows in tried if rows < min(others)) if others else None
    return PassCosts(tuple(tried), tuple(settled.tolist()), alike)


def _passed(model: Model, pool: KvPool, start: int, rows: int) -> torch.Tensor:
    """Let some tokens from a position on go through the model; gives the logits of the first, float32 [vocabulary]."""
    slots = np.arange(start, start + rows, dtype=np.int32)
    tokens = (slots % model.shape.vocab_size).tolist()
    lane = Lane(tokens, start, slots, (SlotRun(0, start),) if start else (), wants="all")
    batch = build_batch([lane], attention_of(model), model.shape.windows)
    return model.forward(batch, pool).whole()[0].cpu()
