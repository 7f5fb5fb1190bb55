"""What drawing a token costs, by filter and by vocabulary: `python benchmarks/drawing_tokens.py`.

Microseconds a row on one core, the least of some rounds, for logits that are peaked as a model's (standard deviation 4)
and for flat ones (0.5).
"""

from itertools import count
from timeit import repeat

import numpy as np
from rich.console import Console
from rich.table import Table

from promptlang.runtime.sampler import Sampling, SamplingRow, sample

ROWS, ROUNDS = 64, 20

FILTERS = {
    "greedy": Sampling(),
    "temperature": Sampling(1.0),
    "top-k 50": Sampling(1.0, top_k=50),
    "top-p 0.95": Sampling(1.0, top_p=0.95),
    "min-p 0.05": Sampling(1.0, min_p=0.05),
    "all three": Sampling(1.0, top_k=50, top_p=0.95, min_p=0.05),
}


def microseconds(size: int, deviation: float, sampling: Sampling, is_masked: bool) -> float:
    """A row of 64."""
    generator = np.random.default_rng(0)
    rows = (generator.normal(size=(ROWS, size)) * deviation).astype(np.float32)
    mask = generator.integers(0, 2**32, size // 32, dtype=np.uint32).view(np.int32) if is_masked else None
    noise = count()

    def draw() -> None:
        for row in rows:
            sample(row, SamplingRow(sampling, mask, next(noise)))

    return min(repeat(draw, number=1, repeat=ROUNDS)) / ROWS * 1e6


def main() -> None:
    table = Table("vocabulary", "logits", "mask", *FILTERS, title="microseconds a row")
    for size in (49_152, 128_256):
        for name, deviation in (("peaked", 4.0), ("flat", 0.5)):
            for is_masked in (False, True):
                times = [microseconds(size, deviation, sampling, is_masked) for sampling in FILTERS.values()]
                table.add_row(f"{size:,}", name, "half" if is_masked else "", *(f"{time:.0f}" for time in times))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
