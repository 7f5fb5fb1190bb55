"""The engine beside its peers, on the embedded model: `make bench`, or `python benchmarks/engine.py [--quick]`.

Everything runs in one process, and what is compared takes turns, so that a noisy neighbour slows all alike: a few steps
of one, then a few of the next. The first step of a turn isn't counted: the threads of the one before may still spin
then. A figure is a ratio of medians.
"""

import argparse
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter

os.environ.setdefault("GOMP_SPINCOUNT", "10000")  # as the command line does; see runtime/openmp.py

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

sys.path.insert(0, str(Path(__file__).parent))

from peers import Decoder, LlamaCpp, Transformers

from promptlang.runtime.cache.eviction import make_policy
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.models import embedded, gguf_files
from promptlang.runtime.models.loading import LoadedModel, load
from promptlang.runtime.models.pass_costs import kept_costs
from promptlang.runtime.random_stream import RandomStream
from promptlang.runtime.requests import GenerateTokens
from promptlang.runtime.usage import Usage

DTYPES = ["float32", "int4"]
ROOT = Path(__file__).parents[1]


class Ours:
    """Our engine as a peer sees it.

    Args:
        loaded: the model.
        shares: whether it caches.
    """

    name = "promptlang"

    def __init__(self, loaded: LoadedModel, shares: bool = True) -> None:
        self.loaded = loaded
        self.options = EngineOptions(shares=shares)
        self.engine = Engine(loaded, self.options)
        self.usage = Usage()

    def again(self, shares: bool = True) -> "Ours":
        """Another engine on the same model."""
        return Ours(self.loaded, shares)

    def prefill(self, tokens: list[int]) -> None:
        self.answer([tokens], 1)
        self.engine.tree.clear()

    def answer(self, prompts: list[list[int]], max_tokens: int) -> None:
        """Answer prompts that share nothing, from an empty cache."""
        self.engine.tree.clear()
        for prompt in prompts:
            self._ask(prompt, 1, max_tokens)
        while self.engine.step():
            pass

    def start(self, prefix: list[int], siblings: int) -> None:
        self.engine = Engine(self.loaded, self.options)
        self.answer([prefix], 1)
        self.usage = Usage()
        self._ask(prefix, siblings, max_tokens=512)
        self.engine.step()

    def _ask(self, prefix: list[int], siblings: int, max_tokens: int) -> None:
        for index in range(siblings):
            prompt = self.engine.new_prompt()
            prompt.extend(prefix)
            request = GenerateTokens(
                prompt, RandomStream(0, index), self.usage, max_tokens=max_tokens, min_tokens=max_tokens
            )
            self.engine.submit(request)

    def step(self) -> None:
        self.engine.step()

    def seconds_a_token(self, prompt: list[int]) -> float:
        """Of one answer after its first token, with drafts, from nothing that was answered before."""
        model, measurements = self.loaded.model, self.loaded.measurements
        costs = kept_costs(measurements, model)
        drafting = None if model.drafting is None else kept_costs(measurements, model.drafting)
        self.engine = Engine(self.loaded, EngineOptions(pass_costs=costs, drafting_costs=drafting))
        self.usage = Usage()
        self._ask(prompt, 1, WRITTEN)
        while not self.usage.generated_tokens:
            self.engine.step()
        before, started = self.usage.generated_tokens, perf_counter()
        while self.engine.step():
            pass
        return (perf_counter() - started) / (WRITTEN - before)


@dataclass(frozen=True)
class Figure:
    """A row of the table: what each of our models reached, and what was wanted.

    Attributes:
        peer: what the peer reached; empty where there is none.
        reached: a text by our weights.
        holds: whether that is what was wanted, by our weights.
    """

    name: str
    peer: str
    reached: dict[str, str]
    wanted: str
    holds: dict[str, bool]


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


def decode_seconds(decoders: list[Decoder], prefix: list[int], siblings: int, rounds: int) -> list[float]:
    """Median seconds a step of each decoder, over so many turns."""
    for decoder in decoders:
        decoder.start(prefix, siblings)
    times: list[list[float]] = [[] for _ in decoders]
    for _ in range(rounds):
        for kept, decoder in zip(times, decoders, strict=True):
            decoder.step()
            kept += [timed(decoder.step) for _ in range(STEPS_A_TURN)]
    return [median(kept) for kept in times]


STEPS_A_TURN = 5

WRITTEN = 64
"""Tokens of an answer that is written with drafts."""

PASSAGE = (
    "The bridge over the Elm was closed on Monday after an inspection found cracks in two of its nine piers. Maria "
    "Keller, who leads the town's works department, said that repairs will take eleven weeks and cost 340,000 euros. "
    "Buses are sent over the mill road until then, and the market stays where it is.\n\n"
)


class Bench:
    """Runs the figures one by one and collects them."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        gguf = embedded.find_gguf()
        assert gguf is not None, "the benchmark needs the embedded model"
        self.ours = {dtype: Ours(load(dtype=dtype, drafts=True)) for dtype in DTYPES}
        self.llama = LlamaCpp(gguf, 8192, torch.get_num_threads())
        self.transformers = Transformers(gguf_files.converted(gguf, print))
        self.figures: list[Figure] = []
        self.tokens: list[int] = np.random.default_rng(0).integers(300, 20_000, 8192).tolist()

    def faster(self, name: str, rates: list[float], peer: float, least: float) -> None:
        """Tokens a second of each of ours over a peer's."""
        ratios = [rate / peer for rate in rates]
        texts = [f"{ratio:.2f} ({rate:,.0f}/s)" for ratio, rate in zip(ratios, rates, strict=True)]
        self._add(name, f"{peer:,.0f}/s", texts, f"≥ {least:g}", [ratio >= least for ratio in ratios])

    def at_most(self, name: str, ratios: list[float], most: float) -> None:
        """A ratio that should be small."""
        self._add(name, "", [f"{ratio:.3f}" for ratio in ratios], f"≤ {most:g}", [ratio <= most for ratio in ratios])

    def _add(self, name: str, peer: str, texts: list[str], wanted: str, holds: list[bool]) -> None:
        reached = dict(zip(self.ours, texts, strict=False))
        self.figures.append(Figure(name, peer, reached, wanted, dict(zip(self.ours, holds, strict=False))))
        print(f"{name}: {reached} (wanted {wanted})", file=sys.stderr, flush=True)

    def run(self) -> None:
        self.prefill()
        for siblings, prefix, least in [(1, 512, 0.8), (8, 512, 1.0), (32, 512, 1.4), (16, 2048, 2.0), (32, 2048, 2.5)]:
            self.decode(self.llama, siblings, prefix, least)
        self.written("a text of its own, 1 sequence, with drafts, over llama.cpp", PASSAGE, 1.0)
        self.written("quoting a text, 1 sequence, with drafts, over llama.cpp", f"{PASSAGE}Again: {PASSAGE}", 1.8)
        self.decode(self.transformers, 32, 2048, 8)
        self.growth()
        self.host_share()
        self.nothing_shared()
        self.tree()
        self.memory()
        self.start()

    def prefill(self) -> None:
        decoders = [*self.ours.values(), self.llama]
        seconds = in_turns([partial(decoder.prefill, self.tokens[:1024]) for decoder in decoders], self.rounds)
        *ours, llama = (1024 / took for took in seconds)
        self.faster("prefill of 1,024 tokens, over llama.cpp", ours, llama, 2.3)

    def decode(self, peer: Decoder, siblings: int, prefix: int, least: float) -> None:
        decoders = [*self.ours.values(), peer]
        seconds = decode_seconds(decoders, self.tokens[:prefix], siblings, self.rounds)
        *ours, theirs = (siblings / took for took in seconds)
        name = f"decode, {siblings} sequence{'s' * (siblings > 1)}, prefix {prefix:,}, over {peer.name}"
        self.faster(name, ours, theirs, least)

    def written(self, name: str, text: str, least: float) -> None:
        """One answer, token by token for the peer."""
        prompt = self.loaded.tokenizer.encode(text)
        prompt = prompt[: len(prompt) - len(self.loaded.tokenizer.encode(PASSAGE)) // 2] if text != PASSAGE else prompt
        ours: dict[str, list[float]] = {dtype: [] for dtype in self.ours}
        theirs: list[float] = []
        self.llama.start(prompt, 1)
        for _ in range(self.rounds):
            for dtype, one in self.ours.items():
                ours[dtype].append(one.seconds_a_token(prompt))
            self.llama.step()
            theirs += [timed(self.llama.step) for _ in range(STEPS_A_TURN)]
        self.faster(name, [1 / median(kept) for kept in ours.values()], 1 / median(theirs), least)

    @property
    def loaded(self) -> LoadedModel:
        return next(iter(self.ours.values())).loaded

    def growth(self) -> None:
        ratios = []
        for ours in self.ours.values():
            near, far = ours.again(), ours.again()
            near.start(self.tokens[:512], 32)
            far.start(self.tokens[:2048], 32)
            long, short = in_turns([far.step, near.step], self.rounds * STEPS_A_TURN)
            ratios.append(long / short)
        self.at_most("time of a step, 32 sequences: prefix 2,048 over 512", ratios, 1.5)

    def host_share(self) -> None:
        ratios = []
        for ours in self.ours.values():
            ours.start(self.tokens[:512], 16)
            usage = ours.usage
            host, model = usage.host_seconds, usage.prefill_seconds + usage.decode_seconds
            for _ in range(self.rounds * STEPS_A_TURN):
                ours.step()
            host, model = usage.host_seconds - host, usage.prefill_seconds + usage.decode_seconds - model
            ratios.append(host / (host + model))
        self.at_most("all but the model, share of a step, 16 sequences", ratios, 0.05)

    def nothing_shared(self) -> None:
        prompts = [self.tokens[at * 200 : at * 200 + 200] for at in range(16)]
        ratios = []
        for ours in self.ours.values():
            cached, plain = in_turns(
                [partial(ours.again(shares).answer, prompts, 8) for shares in (True, False)], self.rounds
            )
            ratios.append(cached / plain)
        self.at_most("prompts that share nothing: time with the cache over without", ratios, 1.01)

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
        self.at_most("match and insert of a 4,096-token prompt, µs", [median(times) * 1e6], 50)

    def memory(self) -> None:
        ours = next(iter(self.ours.values()))
        ours.start(self.tokens[:2048], 32)
        self.at_most("KV slots, 32 sequences over 2,048, over 32 copies", [ours.engine.cache.used / (32 * 2048)], 0.05)

    def start(self) -> None:
        seconds = [median(first_answer(dtype) for _ in range(self.rounds)) for dtype in self.ours]
        self.at_most("start to first answer of examples/triage.pl, s", seconds, 6)

    def show(self) -> None:
        table = Table("figure", *(str(ours.loaded.model.weights) for ours in self.ours.values()), "peer", "wanted")
        for figure in self.figures:
            cells = [
                f"{figure.reached[dtype]} {'✓' if figure.holds[dtype] else '✗'}" if dtype in figure.reached else ""
                for dtype in self.ours
            ]
            table.add_row(figure.name, *cells, figure.peer, figure.wanted)
        console = Console(width=150)
        console.print(table)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        console.print(
            f"{processor()}, {torch.get_num_threads()} threads, torch {torch.__version__}; peak memory {peak:.1f} GiB"
        )


def first_answer(dtype: str) -> float:
    """Seconds from the start of the command that `make demo` runs to the first answer on the screen."""
    started = perf_counter()
    command = [str(Path(sys.executable).with_name("promptlang")), "run", "examples/triage.pl", "--stream"]
    command += ["--arg", "ticket=My bill is twice what it was last month.", "--dtype", dtype]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, cwd=ROOT) as process:
        assert process.stderr is not None
        while process.stderr.readline().strip() != b"assistant":
            assert process.poll() is None, "the command ended without an answer"
        process.stderr.read(1)
        seconds = perf_counter() - started
        process.kill()
    return seconds


def processor() -> str:
    """The machine's name for its processor."""
    with open("/proc/cpuinfo") as info:
        names = [line.split(":", 1)[1].strip() for line in info if line.startswith("model name")]
    return f"{os.cpu_count()} cores, {names[0]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    bench = Bench(rounds=3 if parser.parse_args().quick else 5)
    bench.run()
    bench.show()


if __name__ == "__main__":
    main()
