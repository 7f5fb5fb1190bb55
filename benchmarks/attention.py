"""Tree attention as tails grow: into how many parts a step is cut, how much is padded, and what a layer costs.

`python benchmarks/attention.py`. 64 sequences decode behind one prefix, on the embedded model's shape, their tails of
one length or (mixed) of all lengths up to it. Times are processor time on one core, the least of some rounds; parts and
padding are the same on every machine.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

from time import process_time

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.plan import AttentionPlan, PaddedPart
from promptlang.kernels.tree_attention import TreeAttention

HEADS, KV_HEADS, SIZE = 9, 3, 64
SEQUENCES, PREFIX = 64, 512
LENGTHS = [16, 64, 128, 176, 208, 256, 384, 512, 528, 768, 1024]
LAYERS, ROUNDS = 6, 5
"""Several layers, so that none is in the cache when it is read."""

BACKEND = TreeAttention(torch.device("cpu"))


def lanes(lengths: list[int]) -> list[AttentionLane]:
    """A new token each, behind tails of these lengths."""
    built, at = [], PREFIX
    for length in lengths:
        built.append(AttentionLane(np.array([at + 1 + length], np.int32), ((0, PREFIX), (at + 1, length))))
        at += 2 + length
    return built


def padding(plan: AttentionPlan) -> float:
    """Cells that hide something, of those of all padded parts."""
    padded = [part.mask for part in plan.windows[None].own if isinstance(part, PaddedPart)]
    cells = sum(mask.numel() for mask in padded)
    return sum(int((mask < 0).sum()) for mask in padded) / cells if cells else 0.0


def milliseconds(plan: AttentionPlan, slots: int) -> float:
    """Processor time of a layer."""
    query = torch.randn(HEADS, SEQUENCES, SIZE)
    layers = torch.randn(LAYERS, 2, KV_HEADS, slots, SIZE)
    times = []
    for _ in range(ROUNDS):
        started = process_time()
        for keys, values in layers:
            BACKEND.attend(plan, query, keys, values, SIZE**-0.5)
        times.append(process_time() - started)
    return min(times) / LAYERS * 1e3


def main() -> None:
    table = Table("tails", "parts", "padding", "ms a layer", "parts, mixed", "padding, mixed", "ms a layer, mixed")
    for length in LENGTHS:
        row = [str(length)]
        for lengths in ([length] * SEQUENCES, np.linspace(16, length, SEQUENCES).astype(int).tolist()):
            plan = BACKEND.plan(lanes(lengths), {None})
            parts = plan.windows[None]
            slots = PREFIX + sum(lengths) + 2 * SEQUENCES
            row += [
                str(len(parts.own) + len(parts.more)),
                f"{padding(plan):.2f}",
                f"{milliseconds(plan, slots):.2f}",
            ]
        table.add_row(*row)
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
