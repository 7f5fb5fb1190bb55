"""What a program will cost, before it runs: it is rehearsed on the engine itself, with a model that only guesses.

Prompts, cache, scheduler and constraints are the real ones, so their numbers are. What a model would answer is not
known; so the program is rehearsed with the shortest answers that are legal, with the longest, and with some of either,
and each number is given as a range. Importing this loads torch.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal, TypeAlias

import torch

from promptlang.conversion import bind_arguments
from promptlang.grammar import shapes
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.ending import shortest_end
from promptlang.grammar.reader import read
from promptlang.grammar.shapes import Shape
from promptlang.grammar.vocabulary import Vocabulary
from promptlang.graph import Graph
from promptlang.interpreter import Interpreter, Outcome, Requires, RunError
from promptlang.runtime.batch import Batch
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.kv_pool import KvPool, ModelShape
from promptlang.runtime.loading import LoadedModel
from promptlang.runtime.logits import KnownLogits, Logits
from promptlang.runtime.tokenizer import Tokenizer
from promptlang.runtime.usage import Usage
from promptlang.tasks import Task
from promptlang.tools import ToolFunction, tools_of
from promptlang.values import Value

FIGURES = (
    "requested_tokens",
    "optimal_tokens",
    "computed_tokens",
    "cached_tokens",
    "generated_tokens",
    "forced_tokens",
    "forwards",
    "calls",
)
POOL_TOKENS = 1 << 16
"""Tokens that the KV pool of a rehearsal holds."""

LONGEST_CONTEXT = 1 << 16
STAND_IN_WORDS = 30
"""Words of text that stand for an argument that is not given."""

STAND_IN_ITEMS = 3
SEEDS = (0, 1)
MOST_ROWS = 64
"""Rows rehearsed; what more of them cost is taken from the second half of these."""

Length: TypeAlias = Literal["short", "mixed", "long"]
LENGTHS: tuple[Length, ...] = ("short", "mixed", "long")
REQUIRES: Mapping[Length, Requires] = {"short": "met", "mixed": "asked", "long": "exhausted"}
"""Whether a `require` is met at once, asks its condition, or takes all its retries."""


class CostError(Exception):
    """A program that can't be rehearsed; `str()` says why."""


@dataclass(frozen=True)
class Range:
    """A number between two, both included."""

    low: float
    high: float


@dataclass(frozen=True)
class Estimate:
    """What a number of rows will cost.

    Attributes:
        rows: how many.
        figures: by the names that a run reports, in whole numbers.
        cached_share: the part of the requested tokens that comes from the cache, from 0 to 1.
        assumed: tokens of the text that stood for each argument that was not given.
    """

    rows: int
    figures: dict[str, Range]
    cached_share: Range
    assumed: dict[str, int]


@dataclass(frozen=True)
class Rehearsal:
    """A program with what its rehearsals have in common.

    Args:
        graphs: of all programs, after the passes.
        name: which of them.
        given: arguments of every row, JSON data by name; others are stood in for, each row by another text.
        tokenizer: of the model.
        at_once: rows that run together.
    """

    graphs: Mapping[str, Graph]
    name: str
    given: Mapping[str, Any]
    tokenizer: Tokenizer
    at_once: int

    def estimate(self, rows: int) -> Estimate:
        """What the program costs.

        Args:
            rows: how often it runs.

        Raises:
            CostError: every rehearsal failed.
            ArgumentsError: a given argument does not fit.
        """
        found: list[dict[str, float]] = []
        fault: RunError | None = None
        for length, seed in product(LENGTHS, SEEDS):
            try:
                found.append(self._cost(rows, length, seed))
            except RunError as error:
                fault = error
        if not found:
            raise CostError(f"{self.name} failed in every rehearsal: {fault}")
        shares = [cost["cached_tokens"] / cost["requested_tokens"] if cost["requested_tokens"] else 0 for cost in found]
        assumed = {name: len(self.tokenizer.encode(str(value))) for name, value in self._stand_ins(0).items()}
        figures = {name: Range(*_ends([round(cost[name]) for cost in found])) for name in FIGURES}
        return Estimate(rows, figures, Range(*_ends(shares)), assumed)

    def _cost(self, rows: int, length: Length, seed: int) -> dict[str, float]:
        """The figures of that many rows."""
        few = self._figures(min(rows, MOST_ROWS), length, seed)
        if rows <= MOST_ROWS:
            return few
        half = self._figures(MOST_ROWS // 2, length, seed)
        more = (rows - MOST_ROWS) / (MOST_ROWS - MOST_ROWS // 2)
        return {name: few[name] + more * (few[name] - half[name]) for name in FIGURES}

    def _figures(self, rows: int, length: Length, seed: int) -> dict[str, float]:
        model = GuessingModel(self.tokenizer, length, seed)
        options = EngineOptions(kv_bytes=POOL_TOKENS * model.kv_bytes)
        engine = Engine(LoadedModel(model, self.tokenizer, "guess"), options)
        interpreter = Interpreter(engine, self.graphs, seed, self._tools(), REQUIRES[length])
        waiting = deque(range(rows))
        running: deque[tuple[Task[Outcome], Usage]] = deque()

        def begin() -> None:
            if waiting:
                row = waiting.popleft()
                usage = Usage()
                task = interpreter.start(self.name, self._arguments(row), row, usage=usage)
                running.append((task, usage))
                task.when_done(begin)

        for _ in range(min(rows, self.at_once)):
            begin()
        while running:
            task, usage = running.popleft()
            interpreter.wait(task)
            engine.usage.add_tokens(usage)
        return {name: getattr(engine.usage, name) for name in FIGURES}

    def _tools(self) -> dict[str, ToolFunction]:
        """A function for each tool that returns what stands in for its result: a rehearsal calls nothing outside."""
        tools = tools_of(self.graphs[self.name], self.graphs)
        results = {tool.name: self._stand_in(tool.returns, tool.name) for tool in tools}
        return {name: lambda result=result, **_: result for name, result in results.items()}

    # Arguments ---------------------------------------------------------------------------------------

    def _arguments(self, row: int) -> dict[str, Value]:
        return bind_arguments(self.graphs[self.name], {**self._stand_ins(row), **self.given})

    def _stand_ins(self, row: int) -> dict[str, Any]:
        """A value for each parameter that is not given and has no default."""
        graph = self.graphs[self.name]
        missing = [one.name for one in graph.parameters if one.default is None and one.name not in self.given]
        return {name: self._stand_in(graph.shapes[name], f"{row + 1}: {name}") for name in missing}

    def _stand_in(self, shape: Shape, label: str) -> Any:
        match shape:
            case shapes.Str(maximum=maximum):
                return " ".join([label, *["text"] * STAND_IN_WORDS])[:maximum]
            case shapes.List(item=item, minimum=low, maximum=high):
                count = max(low or 0, min(STAND_IN_ITEMS, STAND_IN_ITEMS if high is None else high))
                return [self._stand_in(item, f"{label} {index}") for index in range(count)]
            case shapes.Record(fields=fields):
                return {field.name: self._stand_in(field.shape, f"{label} {field.name}") for field in fields}
            case shapes.Union(options=options):
                return self._stand_in(options[0], label)
        return self._shortest(shape)

    def _shortest(self, shape: Shape) -> Any:
        """A short value of a shape."""
        tokens = shortest_end(compile_constraint(shape, _vocabulary(self.tokenizer)).start(), LONGEST_CONTEXT)
        return read(shape, self.tokenizer.decode(tokens or []))


def _ends(values: list[Any]) -> tuple[Any, Any]:
    return min(values), max(values)


def _vocabulary(tokenizer: Tokenizer) -> Vocabulary:
    return Vocabulary(
        tokenizer.token_bytes, tokenizer.special_ids, tokenizer.eos_ids, tokenizer.encode, tokenizer.fingerprint
    )


class GuessingModel:
    """Answers at random, as shortly or as long as it may.

    What it says next depends on the last token and its position, so that equal prompts get equal answers.

    Args:
        tokenizer: whose tokens.
        length: `short` ends an answer, a text or a list wherever that is legal; `long` never does; `mixed` now and
            then.
        seed: of its answers.
    """

    weights = "guesses"

    def __init__(self, tokenizer: Tokenizer, length: Length, seed: int) -> None:
        size = tokenizer.vocab_size
        self.shape = ModelShape(
            layers=1, heads=1, kv_heads=1, head_size=1, vocab_size=size, max_positions=LONGEST_CONTEXT
        )
        self.dtype = torch.float32
        self.device = torch.device("cpu")
        self.kv_bytes = KvPool.bytes_per_token(self.shape, self.dtype)
        noise = torch.rand(_MOODS, size, generator=torch.Generator().manual_seed(seed))
        self._logits = noise + _leaning(tokenizer, "short" if length == "short" else "long")
        if length == "mixed":
            self._logits[0] = noise[0] + _leaning(tokenizer, "short")

    def forward(self, batch: Batch, pool: KvPool) -> Logits:
        """See `Model.forward`; reads and writes no keys and values."""
        tokens, positions = batch.tokens[batch.rows], batch.positions[batch.rows]
        return KnownLogits(self._logits[(31 * tokens + positions) % _MOODS])


_MOODS = 17
"""Different rows of logits."""

_ENDS = 1000.0
_DIGIT = 200.0
_WORD = 100.0
_CLOSES = (b'"', b"}", b"]", b'"}', b'"]')


def _leaning(tokenizer: Tokenizer, length: Length) -> torch.Tensor:
    """What the model would rather say: float32 [vocabulary], added to its logits. A long answer is made of digits and
    words: digits make numbers long, and neither is likely to be a stop string."""
    leaning = torch.zeros(tokenizer.vocab_size)
    if length == "long":
        texts = list(enumerate(tokenizer.token_bytes))
        leaning[[token for token, text in texts if re.fullmatch(rb" ?[a-z]+", text)]] = _WORD
        leaning[[token for token, text in texts if re.fullmatch(rb"[0-9]", text)]] = _DIGIT
        leaning[list(tokenizer.eos_ids)] = -_ENDS
    else:
        leaning[[token for token, text in enumerate(tokenizer.token_bytes) if text in _CLOSES]] = _DIGIT
        leaning[list(tokenizer.eos_ids)] = _ENDS
    return leaning
