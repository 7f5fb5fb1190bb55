"""From how many rows on the layout for many rows is the faster one: measured once on a machine, and kept."""

from collections.abc import Callable, Sequence
from time import perf_counter

import torch

from promptlang.runtime.models.linear import LinearByRows, Product
from promptlang.runtime.models.measurements import Measurements

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Row counts that are tried."""

REPEATS = 3

Clock = Callable[[], float]


def measured_limit(products: Sequence[LinearByRows], dtype: torch.dtype, clock: Clock = perf_counter) -> int:
    """The most rows for which the layout for few rows wins.

    Args:
        products: all of a model, so that weights come from memory as in a step.
        dtype: of their input.
        clock: tells seconds.

    Returns:
        The last of `ROWS` before the first at which the layout for many rows wins; 0 if it always does.
    """
    limit = 0
    for rows in ROWS:
        inputs = [torch.ones(rows, product.width, dtype=dtype) for product in products]
        few = _seconds([product.few for product in products], inputs, clock)
        many = _seconds([product.many for product in products], inputs, clock)
        if few > many:
            break
        limit = rows
    return limit


@torch.inference_mode()
def _seconds(products: Sequence[Product], inputs: Sequence[torch.Tensor], clock: Clock) -> float:
    """The least time of some rounds: what disturbs a round only adds to it."""
    times = []
    for _ in range(REPEATS):
        started = clock()
        for product, x in zip(products, inputs, strict=True):
            product(x)
        times.append(clock() - started)
    return min(times)


def kept_limit(measurements: Measurements, products: Sequence[LinearByRows], dtype: torch.dtype) -> int:
    """`measured_limit`, unless it is known from an earlier start.

    Args:
        measurements: where it is kept.
        products, dtype: see `measured_limit`.
    """
    widths = sorted({product.width for product in products})
    kinds = sorted({f"{type(product.few).__name__} or {type(product.many).__name__}" for product in products})
    return measurements.kept(
        "row_limits",
        f"{len(products)} {' '.join(kinds)} of {widths} {dtype}",
        lambda: measured_limit(products, dtype),
        lambda limit: limit in (0, *ROWS),
    )
