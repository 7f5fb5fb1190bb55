"""From how many rows on the layout for many rows is the faster one: measured once on a machine, and kept."""

import json
import logging
import os
import platform
from collections.abc import Callable, Sequence
from pathlib import Path
from time import perf_counter

import torch

from promptlang.runtime.models.linear import LinearByRows, Product

_LOG = logging.getLogger(__name__)

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


def kept_limit(folder: Path, products: Sequence[LinearByRows], dtype: torch.dtype) -> int:
    """`measured_limit`, from a file where there is one for this machine and these products. One that is damaged is
    written anew; where it can't be written, the next start measures again.

    Args:
        folder: where the file is; it is there.
        products, dtype: see `measured_limit`.
    """
    file = folder / "row_limits.json"
    key = _key(products, dtype)
    limits = _read(file)
    if key not in limits:
        limits[key] = measured_limit(products, dtype)
        _write(file, limits)
    return limits[key]


def _key(products: Sequence[LinearByRows], dtype: torch.dtype) -> str:
    """All that the times depend on."""
    widths = sorted({product.width for product in products})
    machine = f"{platform.node()} {platform.machine()} {torch.backends.cpu.get_cpu_capability()}"
    kinds = sorted({f"{type(product.few).__name__} or {type(product.many).__name__}" for product in products})
    return (
        f"{machine}, {torch.get_num_threads()} threads, torch {torch.__version__}, "
        f"{len(products)} {' '.join(kinds)} of {widths} {dtype}"
    )


def _read(file: Path) -> dict[str, int]:
    """What was measured before; nothing where that can't be read."""
    try:
        limits = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: limit for key, limit in limits.items() if limit in (0, *ROWS)} if isinstance(limits, dict) else {}


def _write(file: Path, limits: dict[str, int]) -> None:
    """Whole or not at all."""
    partial = file.with_name(f"{file.name}.{os.getpid()}")
    try:
        partial.write_text(json.dumps(limits, indent=1), encoding="utf-8")
        partial.replace(file)
    except OSError as error:
        _LOG.warning("what is measured can't be kept: %s", error)
        partial.unlink(missing_ok=True)
