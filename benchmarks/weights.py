"""The embedded model with each kind of weights: what a step costs, what memory holds, how far the results are off.

`python benchmarks/weights.py`. Times are processor time on one core, which a busy neighbour hardly changes.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from statistics import median
from time import process_time

import numpy as np
import numpy.typing as npt
import psutil
import torch
from rich.console import Console
from rich.table import Table

from promptlang.kernels.tree_attention import TreeAttention
from promptlang.runtime.cache.kv_pool import KvPool
from promptlang.runtime.cache.lane import Lane
from promptlang.runtime.cache.slots import SlotRun
from promptlang.runtime.models.batch import Batch, build_batch
from promptlang.runtime.models.loading import load
from promptlang.runtime.models.model import Model

Logprobs = npt.NDArray[np.float32]

KINDS = [("float32", False), ("bfloat16", False), ("int4", False), ("int4", True)]
"""A `--dtype`, and whether with `--deterministic`."""

SIBLINGS = [1, 4, 8, 16, 32]
PREFIX, TAIL, CHUNK, REPEATS = 512, 16, 512, 7
BACKEND = TreeAttention(torch.device("cpu"))
TEXT = Path(__file__).parents[1] / "docs" / "language.md"
TEXT_TOKENS = 400


def siblings(count: int) -> Batch:
    """A decoding step: so many sequences with a tail of their own behind a shared prefix."""
    first = [PREFIX + index * (TAIL + 1) for index in range(count)]
    return build_batch(
        [
            Lane([5], PREFIX + TAIL, np.array([start + TAIL], np.int32), (SlotRun(0, PREFIX), SlotRun(start, TAIL)))
            for start in first
        ],
        BACKEND,
    )


def chunk(tokens: list[int], wants_all: bool = False) -> Batch:
    """A prompt at once."""
    lane = Lane(tokens, 0, np.arange(len(tokens), dtype=np.int32), (), "all" if wants_all else "last")
    return build_batch([lane], BACKEND)


def milliseconds(model: Model, pool: KvPool, batch: Batch) -> float:
    """Median processor time of a step."""
    times = []
    for _ in range(REPEATS):
        started = process_time()
        model.forward(batch, pool).whole()
        times.append(process_time() - started)
    return median(times) * 1e3


def resident_mebibytes() -> int:
    """Memory of this process; without that of files, where the system tells them apart (Linux)."""
    memory = psutil.Process().memory_info()
    return (memory.rss - getattr(memory, "shared", 0)) // 2**20


def measure(dtype: str, one_layout: bool, exact: Logprobs | None) -> tuple[list[str], Logprobs]:
    """A row of the table, and log-probabilities float32 [tokens, vocabulary] of the text."""
    before = resident_mebibytes()
    loaded = load(dtype=dtype, one_layout=one_layout)
    model = loaded.model
    memory = resident_mebibytes() - before
    pool = KvPool(model.shape, 2048, model.dtype)
    for tensor in (*pool.keys, *pool.values):
        tensor.normal_()
    steps = [milliseconds(model, pool, siblings(count)) for count in SIBLINGS]
    prefill = CHUNK / milliseconds(model, pool, chunk(list(range(100, 100 + CHUNK)))) * 1e3
    tokens = loaded.tokenizer.encode(TEXT.read_text(encoding="utf-8"))[:TEXT_TOKENS]
    logprobs = model.forward(chunk(tokens, wants_all=True), pool).whole().log_softmax(-1)
    divergence, same = distance(logprobs, logprobs if exact is None else torch.from_numpy(exact))
    row = [
        model.weights,
        *(f"{step:.0f}" for step in steps),
        f"{prefill:.0f}",
        str(memory),
        f"{divergence:.5f}",
        f"{same:.3f}",
    ]
    return row, logprobs.numpy()


def distance(logprobs: torch.Tensor, exact: torch.Tensor) -> tuple[float, float]:
    """Mean Kullback-Leibler divergence, and the share of positions with the same likeliest token."""
    divergence = (exact.double().exp() * (exact.double() - logprobs.double())).sum(-1).mean()
    return float(divergence), float((logprobs.argmax(-1) == exact.argmax(-1)).double().mean())


def main() -> None:
    table = Table("weights", *(f"{count} rows, ms" for count in SIBLINGS), "prefill, tokens/s", "MiB", "KL", "same top")
    exact = None
    # A process each: what one model freed would hide what the next one takes.
    with ProcessPoolExecutor(1, mp_context=get_context("spawn"), max_tasks_per_child=1) as processes:
        for dtype, one_layout in KINDS:
            row, logprobs = processes.submit(measure, dtype, one_layout, exact).result()
            exact = logprobs if exact is None else exact
            table.add_row(*row)
    Console(width=150).print(table)


if __name__ == "__main__":
    main()
