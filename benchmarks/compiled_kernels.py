"""What the Triton kernels become on a device that need not be here: `python benchmarks/compiled_kernels.py`.

Compiles every kernel for every shape ahead of time, and prints registers, spilled bytes, shared memory and the kind of
tensor core instruction of each.
"""

import argparse
import json
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import torch
import triton
from rich.console import Console
from rich.table import Table
from triton.backends.compiler import GPUTarget
from triton.backends.nvidia.compiler import get_ptxas, sm_arch_from_capability
from triton.compiler import ASTSource

from promptlang.kernels.partials import merge, partial_attention
from promptlang.kernels.tiles import Heads, Tile, next_power, tiles

ARCHITECTURES = (80, 90, 100)
DTYPES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
HEADS = [(1, 64), (3, 64), (4, 80), (4, 96), (4, 128), (8, 128), (16, 128), (4, 256)]
"""Groups and sizes."""

FEW = [(3, 64), (4, 128)]

COUNTS = "i32"


@dataclass(frozen=True)
class Shape:
    """One compilation of `partial_attention`."""

    heads: Heads
    tile: Tile
    window: int
    has_cap: bool

    def compiled(self, architecture: int) -> Any:
        kind = DTYPES[self.heads.dtype]
        constants = {
            "GROUPS": self.heads.groups,
            "SIZE": self.heads.size,
            "PADDED_SIZE": max(16, next_power(self.heads.size)),
            "ROWS": self.tile.rows,
            "KEYS": self.tile.keys,
            "WINDOW": self.window,
            "HAS_CAP": self.has_cap,
        }
        types = {
            **dict.fromkeys(("query", "keys", "values"), f"*{kind}"),
            **dict.fromkeys(("slots", "positions", "items"), "*i32"),
            **dict.fromkeys(("output", "lse"), "*fp32"),
            **dict.fromkeys(("scale", "cap"), "fp32"),
            **dict.fromkeys(("query_head", "query_row", "key_head", "key_slot"), COUNTS),
        }
        return _compiled(partial_attention, types, constants, architecture, self.tile)


def _compiled(kernel: Any, types: dict[str, str], constants: dict[str, Any], architecture: int, tile: Tile) -> Any:
    signature = types | dict.fromkeys(constants, "constexpr")
    names = list(signature)
    aligned = [name for name, kind in types.items() if kind.startswith("*") or kind == COUNTS]
    source = ASTSource(
        kernel,
        signature,
        constexprs={(names.index(name),): value for name, value in constants.items()},
        attrs={(names.index(name),): [["tt.divisibility", 16]] for name in aligned},
    )
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    return triton.compile(source, target=GPUTarget("cuda", architecture, 32), options=options)


def shapes(major: int, few: bool) -> Iterator[Shape]:
    """All for devices of one generation."""
    for groups, size in FEW if few else HEADS:
        for dtype in DTYPES:
            heads = Heads(groups, size, dtype)
            yield from (Shape(heads, tile, 0, False) for tile in dict.fromkeys(tiles(heads, major)))
    heads = Heads(4, 128, torch.bfloat16)
    yield from (Shape(heads, tile, 1024, True) for tile in tiles(heads, major))


def figures(compiled: Any, architecture: int) -> dict[str, Any]:
    """What a device would run."""
    ptx = compiled.asm["ptx"]
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(ptx)
        file.flush()
        target = f"--gpu-name={sm_arch_from_capability(architecture)}"
        command = [get_ptxas(architecture).path, "-v", "--regAllocOptLevel=2", target, "-o", os.devnull, file.name]
        assembled = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"(\d+) bytes spill stores.*?Used (\d+) registers", assembled.stderr, re.DOTALL)
    if found is None:
        raise SystemExit(f"{command} failed: {assembled.stderr}")
    kinds = [kind for kind in ("tcgen05", "wgmma", "mma.sync") if kind in ptx]
    return {
        "registers": int(found[2]),
        "spilled": int(found[1]),
        "shared": compiled.metadata.shared,
        "tensor cores": kinds[0] if kinds else "none",
    }


def measured(architecture: int, few: bool) -> Iterator[dict[str, Any]]:
    for shape in shapes(architecture // 10, few):
        yield {
            "device": f"sm_{architecture}",
            "kernel": "partial_attention",
            "dtype": str(shape.heads.dtype).removeprefix("torch."),
            "groups": shape.heads.groups,
            "size": shape.heads.size,
            "tile": f"{shape.tile.rows} x {shape.tile.keys}",
            **figures(shape.compiled(architecture), architecture),
        }
    for size in {size for _, size in (FEW if few else HEADS)}:
        types = {
            **dict.fromkeys(("output", "lse"), "*fp32"),
            **dict.fromkeys(("first_parts", "parts"), "*i32"),
            **dict.fromkeys(("sinks", "merged"), "*bf16"),
        }
        constants = {"SIZE": size, "PADDED_SIZE": next_power(size), "HAS_SINKS": True}
        yield {
            "device": f"sm_{architecture}",
            "kernel": "merge",
            "dtype": "bfloat16",
            "groups": "",
            "size": size,
            "tile": "",
            **figures(_compiled(merge, types, constants, architecture, Tile(1, 1)), architecture),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--architecture", type=int, choices=ARCHITECTURES, action="append")
    parser.add_argument("--few", action="store_true", help="only some shapes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows = [row for device in options.architecture or ARCHITECTURES for row in measured(device, options.few)]
    if options.json:
        print(json.dumps(rows))
        return
    table = Table(*rows[0])
    for row in rows:
        table.add_row(*map(str, row.values()))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
