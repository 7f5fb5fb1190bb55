"""What each cache and eviction policy saves, without a model: `python benchmarks/cache.py FOLDER`.

FOLDER holds request traces in Mooncake's format (`mooncake_*.jsonl`) and tree searches in DeFT's (`deft_*.json`);
without it, the made-up program of agents runs
alone. Then the cost of the tree itself: a prompt of 4,096 tokens, found and inserted.
"""

import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter

import numpy as np

from promptlang.runtime.cache.eviction import make_policy
from promptlang.runtime.cache.radix_tree import RadixTree
from promptlang.runtime.cache.slots import SlotAllocator, Slots
from promptlang.runtime.simulation.block_cache import BLOCK, BlockCache
from promptlang.runtime.simulation.no_cache import NoCache
from promptlang.runtime.simulation.simulator import Call, Replay, belady, footprint, replay, replay_program
from promptlang.runtime.simulation.workloads import TRACE_BLOCK, agent_program, read_trace, read_trees

TRACE_BUDGET = 2_600_000
"""Tokens of cache for the traces."""

TREES = 4
"""Tree searches replayed of each file."""


def main(arguments: list[str]) -> None:
    agents = agent_program(100)
    print_table("100 agents, a cache of 30 % of the footprint", agents, footprint(agents) * 3 // 10, 1)
    for folder in arguments:
        for path in sorted(Path(folder).glob("mooncake_*.jsonl")):
            print_table(path.stem, read_trace(path), TRACE_BUDGET // TRACE_BLOCK, TRACE_BLOCK)
        for path in sorted(Path(folder).glob("deft_*.json")):
            trees = read_trees(path, TREES)
            print_table(f"{path.stem}, {TREES} trees", trees, footprint(trees) * 3 // 10, 1)
    print_costs(4096)


def print_table(title: str, calls: list[Call], budget: int, unit: int) -> None:
    """One row a cache.

    Args:
        title: what the calls are.
        calls: to replay.
        budget: of each cache, in units.
        unit: how many tokens one token of the calls stands for.
    """
    print(f"\n{title}: {len(calls):,} calls, budget {budget * unit:,} of {footprint(calls) * unit:,} tokens")
    print(f"{'cache':>10} {'hit rate':>9} {'of best':>8} {'hit tokens':>13} {'evicted':>13}")
    best = belady(calls, budget)
    for name, run in caches(budget, max(1, BLOCK // unit)).items():
        print_row(name, run(calls), best, unit)
    print_row("belady", best, best, unit)


def caches(budget: int, block: int) -> dict[str, Callable[[list[Call]], Replay]]:
    """What is compared, by name; `block` is in tokens of the calls."""

    def tree(policy: str) -> RadixTree:
        return RadixTree(SlotAllocator(budget), make_policy(policy))

    return {
        "none": lambda calls: replay(NoCache(SlotAllocator(budget)), calls),
        "blocks": lambda calls: replay(BlockCache(SlotAllocator(budget), block), calls),
        "fifo": lambda calls: replay(tree("fifo"), calls),
        "lfu": lambda calls: replay(tree("lfu"), calls),
        "lru": lambda calls: replay(tree("lru"), calls),
        "program": lambda calls: replay_program(tree("program"), calls),
    }


def print_row(name: str, result: Replay, best: Replay, unit: int) -> None:
    ratio = result.hit_rate / best.hit_rate
    tokens = f"{result.hit_tokens * unit:>13,} {result.evicted_tokens * unit:>13,}"
    print(f"{name:>10} {result.hit_rate:>9.1%} {ratio:>8.2f} {tokens}")


def print_costs(length: int, rounds: int = 200) -> None:
    """Medians of match and insertion of a new prompt, and of matching a known one whole, in microseconds."""
    tree = RadixTree(SlotAllocator(length * rounds), make_policy("lru"))
    random = np.random.default_rng(0)
    prompts = [random.integers(0, 50_000, length, dtype=np.int32) for _ in range(rounds)]
    slots = [tree.allocator.allocate(length) for _ in range(rounds)]

    def insert(prompt: Slots, own: Slots | None) -> None:
        assert own is not None
        match = tree.match(prompt)
        tree.insert(match.node, prompt[match.length :], own)

    print(f"\na prompt of {length:,} tokens")
    print(f"  match and insert, new: {median(timed(insert, prompts, slots)):.1f} us")
    print(f"  match, known:          {median(timed(tree.match, prompts)):.1f} us")


def timed(function: Callable[..., object], *arguments: list[object] | list[Slots] | list[Slots | None]) -> list[float]:
    """The time of each call of `function`, in microseconds."""
    times = []
    for given in zip(*arguments, strict=True):
        started = perf_counter()
        function(*given)
        times.append((perf_counter() - started) * 1e6)
    return times


if __name__ == "__main__":
    main(sys.argv[1:])
