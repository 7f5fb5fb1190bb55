"""The engine beside its peers, on the embedded model: `make bench`, or
`python benchmarks/engine.py [--quick] [--dtype int4]`.

Everything runs in one process, and what is compared takes turns, step by step, so that a noisy neighbour slows all
alike. A figure is a ratio of medians.
"""

import argparse
import os
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))

from peers import Decoder, LlamaCpp, Transformers

from promptlang.runtime import embedded
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.eviction import make_policy
from promptlang.runtime.loading import LoadedModel, load
from promptlang.runtime.radix_tree import RadixTree
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import Generate
from promptlang.runtime.slots import SlotAllocator
from promptlang.runtime.usage import Usage


class Ours:
    """Our engine as a peer sees it.

    Args:
        loaded: the model.
        shares: whether it caches.
    """

    name = "promptlang"

    def __init__(self, loaded: LoadedModel, shares: bool = True) -> None:
        self._loaded = loaded
        self._shares = shares
        self.engine = Engine(loaded)
        self.usage = Usage()

    def prefill(self, tokens: list[int]) -> None:
        self._ask(tokens, 1, max_tokens=1)
        while self.engine.step():
            pass
        self.engine.tree.clear()

    def start(self, prefix: list[int], siblings: int) -> None:
        self.engine = Engine(self._loaded, EngineOptions(shares=self._shares))
        self._ask(prefix, 1, max_tokens=1)
        while self.engine.step():
            pass
        self.usage = Usage()
        self._ask(prefix, siblings, max_tokens=512)
        self.engine.step()

    def _ask(self, prefix: list[int], siblings: int, max_tokens: int) -> None:
        for index in range(siblings):
            prompt = self.engine.new_prompt()
            prompt.extend(prefix)
            request = Generate(prompt, RandomStream(0, index), self.usage, max_tokens=max_tokens, min_tokens=max_tokens)
            self.engine.submit(request)

    def step(self) -> None:
        self.engine.step()


@dataclass(frozen=True)
class Figure:
    """A row of the table."""

    name: str
    ours: str
    peer: str
    ratio: float
    least: str
    holds: bool


def timed(action: Callable[[], None]) -> float:
    started = perf_counter()
    action()
    return perf_counter() - started


def in_turns(actions: list[Callable[[], None]], rounds: int) -> list[float]:
    """The median seconds of each action, all of them in every round."""
    times: list[list[float]] = [[] for _ in actions]
    for _ in range(rounds):
        for kept, action in zip(times, actions, strict=True):
            kept.append(timed(action))
    return [median(kept) for kept in times]


def decode_seconds(decoders: list[Decoder], prefix: list[int], siblings: int, steps: int) -> list[float]:
    """Median seconds a step of each decoder."""
    for decoder in decoders:
        decoder.start(prefix, siblings)
        decoder.step()
    return in_turns([decoder.step for decoder in decoders], steps)


class Bench:
    """Runs the figures one by one and collects them."""

    def __init__(self, quick: bool, dtype: str) -> None:
        self.steps = 5 if quick else 12
        self.rounds = 3 if quick else 5
        loaded = load(dtype=dtype)
        self.dtype = dtype
        self.loaded = loaded
        gguf = embedded.find_gguf()
        assert gguf is not None, "the benchmark needs the embedded model"
        self.ours = Ours(loaded)
        self.llama = LlamaCpp(gguf, 8192, torch.get_num_threads())
        self.transformers = Transformers(embedded.converted(gguf, print))
        self.figures: list[Figure] = []
        generator = np.random.default_rng(0)
        self.tokens = generator.integers(300, 20_000, 8192).tolist()

    def at_least(self, name: str, ours: float, peer: float, least: float, unit: str = "tok/s") -> None:
        self._add(name, f"{ours:,.0f} {unit}", f"{peer:,.0f} {unit}", ours / peer, f"≥ {least:g}", ours / peer >= least)

    def at_most(self, name: str, ours: str, peer: str, ratio: float, most: float) -> None:
        self._add(name, ours, peer, ratio, f"≤ {most:g}", ratio <= most)

    def _add(self, name: str, ours: str, peer: str, ratio: float, bound: str, holds: bool) -> None:
        self.figures.append(Figure(name, ours, peer, ratio, bound, holds))
        print(f"{name}: {ours} / {peer} = {ratio:.3g} (wanted {bound})", file=sys.stderr, flush=True)

    def run(self) -> None:
        self.prefill()
        for siblings, prefix, least in [(1, 512, 0.8), (8, 512, 1.0), (32, 512, 1.4), (16, 2048, 2.0), (32, 2048, 2.5)]:
            ours, llama = decode_seconds([self.ours, self.llama], self.tokens[:prefix], siblings, self.steps)
            name = f"decode, {siblings} sibling{'s' * (siblings > 1)}, prefix {prefix:,}, over llama.cpp"
            self.at_least(name, siblings / ours, siblings / llama, least)
        ours, theirs = decode_seconds([self.ours, self.transformers], self.tokens[:2048], 32, 3)
        self.at_least("decode, 32 siblings, prefix 2,048, over transformers", 32 / ours, 32 / theirs, 8)
        self.growth()
        self.host_share()
        self.tree()
        self.nothing_shared()
        self.memory()

    def prefill(self) -> None:
        def cold(decoder: Decoder) -> Callable[[], None]:
            return lambda: decoder.prefill(self.tokens[:1024])

        ours, llama = in_turns([cold(self.ours), cold(self.llama)], self.rounds)
        self.at_least("prefill of 1,024 tokens, over llama.cpp", 1024 / ours, 1024 / llama, 2.3)

    def growth(self) -> None:
        near, far = Ours(self.loaded), Ours(self.loaded)
        near.start(self.tokens[:512], 32)
        far.start(self.tokens[:2048], 32)
        long, short = in_turns([far.step, near.step], self.steps)
        self.at_most(
            "step, 32 siblings: prefix 2,048 over 512",
            f"{long * 1e3:.0f} ms",
            f"{short * 1e3:.0f} ms",
            long / short,
            1.5,
        )

    def host_share(self) -> None:
        self.ours.start(self.tokens[:512], 16)
        usage = self.ours.usage
        host, model = usage.host_seconds, usage.prefill_seconds + usage.decode_seconds
        seconds = sum(timed(self.ours.step) for _ in range(self.steps))
        host, model = usage.host_seconds - host, usage.prefill_seconds + usage.decode_seconds - model
        self.at_most(
            "all but the model, share of a step, 16 siblings",
            f"{host * 1e3:.1f} ms",
            f"{seconds * 1e3:.0f} ms",
            host / (host + model),
            0.05,
        )

    def tree(self) -> None:
        tokens = np.array(self.tokens[:4096], dtype=np.int32)
        tree = RadixTree(SlotAllocator(1 << 20), make_policy("lru"))
        times = []
        for salt in range(100):
            fresh = tokens.copy()
            fresh[0] = 30_000 + salt
            slots = tree.allocator.allocate(4096)
            assert slots is not None
            started = perf_counter()
            tree.insert(tree.match(fresh).node, fresh, slots)
            tree.match(fresh)
            times.append(perf_counter() - started)
        seconds = median(times)
        self.at_most("match and insert of a 4,096-token prompt", f"{seconds * 1e6:.0f} µs", "50 µs", seconds / 50e-6, 1)

    def nothing_shared(self) -> None:
        prompts = [self.tokens[at * 200 : at * 200 + 200] for at in range(16)]

        def all_of_them(shares: bool) -> Callable[[], None]:
            def run() -> None:
                ours = Ours(self.loaded, shares)
                ours.engine = Engine(self.loaded, EngineOptions(shares=shares))
                for prompt in prompts:
                    ours._ask(prompt, 1, max_tokens=8)
                while ours.engine.step():
                    pass

            return run

        cached, plain = in_turns([all_of_them(True), all_of_them(False)], self.rounds)
        self.at_most(
            "prompts that share nothing: cache over none", f"{cached:.2f} s", f"{plain:.2f} s", cached / plain, 1.01
        )

    def memory(self) -> None:
        self.ours.start(self.tokens[:2048], 32)
        used, copies = self.ours.engine.cache.used, 32 * 2048
        self.at_most(
            "KV slots, 32 siblings over 2,048, over own copies", f"{used:,}", f"{copies:,}", used / copies, 0.05
        )

    def show(self) -> None:
        table = Table(title=f"promptlang beside its peers, embedded model (SmolLM2-135M-Instruct, {self.dtype})")
        for column in ("figure", "ours", "peer", "ratio", "wanted", ""):
            table.add_column(column, justify="left" if column == "figure" else "right")
        for figure in self.figures:
            table.add_row(
                figure.name, figure.ours, figure.peer, f"{figure.ratio:.3g}", figure.least, "✓" if figure.holds else "✗"
            )
        console = Console(width=130)
        console.print(table)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        console.print(
            f"{processor()}, {torch.get_num_threads()} threads, torch {torch.__version__}; peak memory {peak:.1f} GiB"
        )


def processor() -> str:
    """The machine's name for its processor."""
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {names[0]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "int4"], help="our weights")
    options = parser.parse_args()
    bench = Bench(options.quick, options.dtype)
    bench.run()
    bench.show()


if __name__ == "__main__":
    main()
