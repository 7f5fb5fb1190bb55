"""What a regular shape costs as a constraint: by llguidance's parser, as a table of masks, and as a trie of its texts.

    python benchmarks/constraint_steps.py

A table lists what may come in each state of an automaton; outlines-core builds it. For each shape and way: the
processor time of a compilation, the memory that one holds when it has been used, the processor time of a new answer
(or a fork), and that of a step a row, where 1, 16, 64 or 256 answers stand under the same constraint. A step asks each
answer for its mask, lays it into a row of an array, and takes a random token of it. Medians of repeats.
"""

import gc
import random
import resource
import time
from collections.abc import Callable
from statistics import median
from typing import Protocol

import numpy as np
import numpy.typing as npt
from constraint_engines import MaskTable
from constraints import embedded_vocabulary

from promptlang.grammar.engines.earley import compile_grammar
from promptlang.grammar.engines.trie import TrieConstraint
from promptlang.grammar.notation import to_grammar
from promptlang.grammar.regular.regex import to_text
from promptlang.grammar.regular.scalars import bare, constant_text
from promptlang.grammar.shapes import Constant, Int, Pattern, Shape, Str, Union
from promptlang.grammar.vocabulary import Mask, Vocabulary

SHAPES: dict[str, Shape] = {
    "int in 1..5": Int(1, 5),
    "bool": Union((Constant(True), Constant(False))),
    "six literals": Union(tuple(map(Constant, ("billing", "network", "hardware", "account", "software", "other")))),
    "a date": Pattern(r"\d{4}-\d{2}-\d{2}"),
    "a code": Pattern(r"[A-Z]{3}-\d{3}"),
    "str(max=40)": Str(40),
}
ROWS = (1, 16, 64, 256)
STEPS = 12
REPEATS = 15
KEPT = 10
"""Constraints held at once to see what one takes."""


class State(Protocol):
    """A place in an answer."""

    def mask(self) -> Mask:
        """The tokens that may come; none where the answer is whole."""

    def advance(self, token: int) -> None:
        """Take a token of the mask."""


class Constraint(Protocol):
    """What starts answers."""

    def start(self) -> State:
        """A new one."""


def trie(shape: Shape, vocabulary: Vocabulary) -> Constraint:
    assert isinstance(shape, Union)
    texts = [constant_text(option.value) for option in shape.options if isinstance(option, Constant)]
    return TrieConstraint(texts, vocabulary)


def parser(shape: Shape, vocabulary: Vocabulary) -> Constraint:
    return compile_grammar(to_grammar(shape, ""), vocabulary)


def table(shape: Shape, vocabulary: Vocabulary) -> Constraint:
    regex = bare(shape)
    assert regex is not None
    return MaskTable(to_text(regex), vocabulary)


def run(constraint: Constraint, vocabulary: Vocabulary, rows: int, seed: int) -> float:
    """Seconds a row of a step."""
    source, states = random.Random(seed), [constraint.start() for _ in range(rows)]
    spent, asked = 0.0, 0
    masks = np.zeros((rows, vocabulary.mask_words), dtype=np.int32)
    for _ in range(STEPS):
        started = time.process_time()
        fill(masks, states)
        spent += time.process_time() - started
        asked += len(states)
        choices = [vocabulary.tokens_of(mask) for mask in masks[: len(states)]]
        going_on = [(state, source.choice(tokens)) for state, tokens in zip(states, choices, strict=True) if tokens]
        started = time.process_time()
        for state, token in going_on:
            state.advance(token)
        spent += time.process_time() - started
        states = [state for state, _ in going_on]
        if not states:
            break
    return spent / asked


def fill(masks: npt.NDArray[np.int32], states: list[State]) -> None:
    for row, state in enumerate(states):
        masks[row] = state.mask()


def seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def resident() -> int:
    """Bytes of memory that the process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def main() -> None:
    vocabulary = embedded_vocabulary()
    print(
        f"{'':14}{'':8}{'compile, ms':>12}{'KiB':>8}{'start, us':>12}"
        + "".join(f"{f'{rows} rows, us':>14}" for rows in ROWS)
    )
    for name, shape in SHAPES.items():
        for make in (parser, table, *([trie] if isinstance(shape, Union) else [])):
            print(f"{name:14}{make.__name__:8}" + measured(make, shape, vocabulary), flush=True)


def measured(make: Callable[[Shape, Vocabulary], Constraint], shape: Shape, vocabulary: Vocabulary) -> str:
    compiling = median(seconds(lambda: make(shape, vocabulary)) for _ in range(REPEATS))
    gc.collect()
    before = resident()
    kept = [make(shape, vocabulary) for _ in range(KEPT)]
    for constraint in kept:
        run(constraint, vocabulary, 16, 0)
    gc.collect()
    taken = max(0, resident() - before) / KEPT
    starting = median(seconds(lambda: [kept[0].start() for _ in range(100)]) / 100 for _ in range(REPEATS))
    times = [median(run(kept[0], vocabulary, rows, seed) for seed in range(REPEATS)) for rows in ROWS]
    return f"{compiling * 1e3:12.2f}{taken / 1024:8.0f}{starting * 1e6:12.1f}" + "".join(
        f"{time * 1e6:14.1f}" for time in times
    )


if __name__ == "__main__":
    main()
