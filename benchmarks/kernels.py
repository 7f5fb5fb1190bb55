"""The Triton kernels on a device: `python benchmarks/kernels.py [--json FILE]`, in a few minutes.

Each case is first compared with attention in float64, then timed beside torch's own operations over the same plan, and
beside `scaled_dot_product_attention` a sequence, which reads what sequences share once for each. Bytes that must move
over the time are given as a share of what a copy on the device reaches.

Without CUDA, `TRITON_INTERPRET=1` compares small cases on the processor, and times nothing.
"""

import argparse
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

from promptlang.kernels.lane import AttentionLane
from promptlang.kernels.reference import ReferenceAttention
from promptlang.kernels.tiles import Heads
from promptlang.kernels.tree_attention import TreeAttention
from promptlang.kernels.triton_attention import TritonAttention

INTERPRETS = os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = torch.device("cpu" if INTERPRETS else "cuda")
DTYPE = torch.float16 if INTERPRETS else torch.bfloat16
REPEATS, WARM_UP = 30, 5
ALLOWED = 1e-2
"""Error relative to the largest value, in half precision."""


@dataclass(frozen=True)
class Case:
    """Sequences behind one prefix.

    Attributes:
        siblings: how many.
        prefix, tail: tokens that all share, and that each has alone.
        new: tokens of each in this pass.
        heads, kv_heads, size: of the model.
    """

    name: str
    siblings: int
    prefix: int
    tail: int
    new: int = 1
    heads: int = 32
    kv_heads: int = 8
    size: int = 128

    @property
    def lanes(self) -> list[AttentionLane]:
        own = self.tail + self.new
        starts = [self.prefix + index * own for index in range(self.siblings)]
        contexts = [((0, self.prefix), (start, self.tail)) if self.tail else ((0, self.prefix),) for start in starts]
        return [
            AttentionLane(np.arange(start + self.tail, start + own, dtype=np.int32), context)
            for start, context in zip(starts, contexts, strict=True)
        ]

    @property
    def slots(self) -> int:
        return self.prefix + self.siblings * (self.tail + self.new)

    @property
    def bytes_moved(self) -> int:
        """Keys and values once, queries and output once."""
        elements = 2 * self.kv_heads * self.slots + 2 * self.heads * self.siblings * self.new
        return elements * self.size * DTYPE.itemsize


CASES = [
    *(Case(f"decode, {count} siblings", count, 8192, 256) for count in (1, 8, 32, 64, 256)),
    Case("decode, 300 siblings, prefix 10,000", 300, 10_000, 1),
    Case("decode, heads of 64, groups of 3", 32, 2048, 64, heads=9, kv_heads=3, size=64),
    Case("extend, 4,096 tokens", 1, 0, 0, new=4096),
    Case("extend, 8 times 128 behind 4,096", 8, 4096, 0, new=128),
]
SMALL = [
    Case("decode, 5 siblings", 5, 300, 3, heads=8, kv_heads=2, size=32),
    Case("extend, 2 times 30 behind 70", 2, 70, 0, new=30, heads=6, kv_heads=2, size=64),
]


def milliseconds(action: Callable[[], object]) -> float:
    """The median on the device."""
    for _ in range(WARM_UP):
        action()
    times = []
    for _ in range(REPEATS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        action()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return median(times)


def copied_a_second() -> float:
    """Bytes that a copy on the device reads and writes."""
    source = torch.empty(1 << 29, dtype=torch.uint8, device=DEVICE)
    target = torch.empty_like(source)
    return 2 * len(source) / (milliseconds(lambda: target.copy_(source)) / 1e3)


def measured(case: Case, bandwidth: float | None) -> dict[str, object]:
    generator = torch.Generator(DEVICE).manual_seed(0)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, device=DEVICE).to(DTYPE)

    lanes, rows, scale = case.lanes, case.siblings * case.new, case.size**-0.5
    query = drawn(case.heads, rows, case.size)
    keys, values = (drawn(case.kv_heads, case.slots, case.size) for _ in range(2))
    ours = TritonAttention(DEVICE, Heads(case.heads // case.kv_heads, case.size, DTYPE))
    plan = ours.plan(lanes, {None})
    plain = ReferenceAttention(DEVICE)
    expected = plain.attend(plain.plan(lanes, {None}), query.double(), keys.double(), values.double(), scale)
    found = ours.attend(plan, query, keys, values, scale)
    error = float((found.double() - expected).abs().max() / expected.abs().max())
    row: dict[str, object] = {"case": case.name, "error": round(error, 5), "right": error < ALLOWED}
    if bandwidth is None:
        return row
    took = milliseconds(lambda: ours.attend(plan, query, keys, values, scale))
    tree = TreeAttention(DEVICE)
    tree_plan = tree.plan(lanes, {None})
    in_torch = milliseconds(lambda: tree.attend(tree_plan, query, keys, values, scale))
    alone = milliseconds(each_alone(case, lanes, query, keys, values))
    return row | {
        "ms": round(took, 4),
        "share of a copy": round(case.bytes_moved / (took / 1e3) / bandwidth, 3),
        "over torch": round(in_torch / took, 2),
        "over each alone": round(alone / took, 2),
    }


def each_alone(
    case: Case, lanes: list[AttentionLane], query: Tensor, keys: Tensor, values: Tensor
) -> Callable[[], None]:
    """A call a sequence, over copies of its own keys and values, which are made before."""
    asked = []
    for index, lane in enumerate(lanes):
        runs = [np.arange(start, start + length) for start, length in lane.context]
        slots = torch.from_numpy(np.concatenate([*runs, lane.slots]).astype(np.int64)).to(DEVICE)
        rows = query[None, :, index * case.new : (index + 1) * case.new]
        sees = torch.ones(case.new, len(slots), dtype=torch.bool, device=DEVICE).tril(len(slots) - case.new)
        asked.append((rows, keys[None, :, slots], values[None, :, slots], sees if case.new > 1 else None))

    def attend() -> None:
        for rows, its_keys, its_values, sees in asked:
            scaled_dot_product_attention(rows, its_keys, its_values, attn_mask=sees, enable_gqa=True)

    return attend


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures here, too")
    options = parser.parse_args()
    if not INTERPRETS and not torch.cuda.is_available():
        raise SystemExit("there is no CUDA here; with TRITON_INTERPRET=1, small cases are compared on the processor")
    bandwidth = None if INTERPRETS else copied_a_second()
    rows = [measured(case, bandwidth) for case in (SMALL if INTERPRETS else CASES)]
    table = Table(*rows[0], title="interpreted" if INTERPRETS else torch.cuda.get_device_name())
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=120).print(table)
    if options.json is not None:
        options.json.write_text(json.dumps({"device": table.title, "figures": rows}, indent=1), encoding="utf-8")
    if not all(row["right"] for row in rows):
        raise SystemExit("a kernel is wrong")


if __name__ == "__main__":
    main()
