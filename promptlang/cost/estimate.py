"""What a program will cost, before it runs: it is rehearsed on the engine itself, with a model that only guesses.

Prompts, cache, scheduler and constraints are the real ones, so their numbers are. What a model would answer is not
known; so the program is rehearsed with the shortest answers that are legal, with the longest, and with some between,
and each number is given as a range. What the model answers may also decide which way a program goes: each rehearsal
takes a way of its own, but there may be more. Importing this loads torch.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from promptlang.compiler.graph import Graph
from promptlang.cost.errors import CostError as CostError
from promptlang.cost.rehearsal import ALWAYS, LONGEST_CONTEXT, NEVER, GuessingEngine, Manner
from promptlang.grammar import shapes
from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import State
from promptlang.grammar.ending import shortest_end
from promptlang.grammar.reader import read
from promptlang.grammar.shapes import Shape
from promptlang.interpreter.host_functions import ToolFunction, tools_of
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.machine import Requires
from promptlang.interpreter.run import Outcome, RunError
from promptlang.interpreter.tasks import Task
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.text.tokenizer import Tokenizer
from promptlang.runtime.usage import Usage
from promptlang.values.conversion import bind_arguments
from promptlang.values.values import Value

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

STAND_IN_WORDS = 30
"""Words of text that stand for an argument that is not given."""

STAND_IN_ITEMS = 3

STAND_IN_TOKENS = 6
"""Tokens that tell a value of a pattern or a grammar from another."""

STAND_IN_SPAN = 9999
"""How far apart numbers may lie, where their type does not say it."""

REHEARSALS = (
    Manner(ALWAYS, 0, is_certain=True),
    Manner(ALWAYS, 1),
    Manner(0.5, 2),
    Manner(0.1, 3),
    Manner(0.1, 4),
    Manner(NEVER, 5),
    Manner(NEVER, 6, is_spelt=True),
)

MOST_ROWS = 64
"""Rows rehearsed; what more of them cost is taken from the second half of these."""


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
        played = [self._play_all(rows, manner) for manner in REHEARSALS]
        if not any(one.succeeded for one in played):
            raise CostError(f"{self.name} failed in every rehearsal: {played[0].fault}")
        found = [one.figures for one in played]
        shares = [cost["cached_tokens"] / cost["requested_tokens"] if cost["requested_tokens"] else 0 for cost in found]
        assumed = {name: len(self.tokenizer.encode(str(value))) for name, value in self._stand_ins(0).items()}
        figures = {name: Range(*_ends([round(cost[name]) for cost in found])) for name in FIGURES}
        return Estimate(rows, figures, Range(*_ends(shares)), assumed)

    def _play_all(self, rows: int, manner: Manner) -> "_Played":
        """That many rows; where they are many, what the first ones show."""
        few = self._play(min(rows, MOST_ROWS), manner)
        if rows <= MOST_ROWS:
            return few
        half = self._play(MOST_ROWS // 2, manner).figures
        more = (rows - MOST_ROWS) / (MOST_ROWS - MOST_ROWS // 2)
        return replace(
            few, figures={name: few.figures[name] + more * (few.figures[name] - half[name]) for name in half}
        )

    def _play(self, rows: int, manner: Manner) -> "_Played":
        engine = GuessingEngine(self.tokenizer, manner, POOL_TOKENS)
        interpreter = Interpreter(LocalBackend(engine), self.graphs, manner.seed, self.tools(), _requires(manner.haste))
        waiting = deque(range(rows))
        running: deque[tuple[Task[Outcome], Usage]] = deque()

        def begin() -> None:
            if waiting:
                row = waiting.popleft()
                usage = Usage()
                task = interpreter.start(self.name, self.arguments(row), row, usage=usage)
                running.append((task, usage))
                task.when_done(begin)

        for _ in range(min(rows, self.at_once)):
            begin()
        succeeded, fault = 0, None
        while running:
            task, usage = running.popleft()
            try:
                interpreter.wait(task)
                succeeded += 1
            except RunError as error:
                fault = error
            engine.usage.add_tokens(usage)
        return _Played({name: getattr(engine.usage, name) for name in FIGURES}, succeeded, fault)

    def tools(self) -> dict[str, ToolFunction]:
        """A function for each tool that returns what stands in for its result: a rehearsal calls nothing outside."""
        tools = tools_of(self.graphs[self.name], self.graphs)
        results = {tool.name: self._stand_in(tool.returns, tool.name) for tool in tools}
        return {name: lambda result=result, **_: result for name, result in results.items()}

    # Arguments ---------------------------------------------------------------------------------------

    def arguments(self, row: int) -> dict[str, Value]:
        """What a row is rehearsed with."""
        return bind_arguments(self.graphs[self.name], {**self._stand_ins(row), **self.given})

    def _stand_ins(self, row: int) -> dict[str, Any]:
        """A value for each parameter that is not given and has no default."""
        graph = self.graphs[self.name]
        missing = [one.name for one in graph.parameters if one.default is None and one.name not in self.given]
        return {name: self._stand_in(graph.shapes[name], f"{row + 1}: {name}") for name in missing}

    def _stand_in(self, shape: Shape, label: str) -> Any:
        """A value of a shape, as likely as not another for each label."""
        choose = Random(label)
        match shape:
            case shapes.Str(maximum=maximum):
                return " ".join([label, *["text"] * STAND_IN_WORDS])[:maximum]
            case shapes.Int(low=low, high=high):
                return choose.randint(*_bounds(low, high))
            case shapes.Float(low=low, high=high):
                least, most = _bounds(low, high)
                return min(max(round(choose.uniform(least, most), 2), least), most)
            case shapes.List(item=item, minimum=low, maximum=high):
                most = 0 if isinstance(item, shapes.Recursive) else STAND_IN_ITEMS
                count = max(low or 0, min(most, most if high is None else high))
                return [self._stand_in(item, f"{label} {index}") for index in range(count)]
            case shapes.Dict(value=value):
                names = [f"{label} {index}" for index in range(STAND_IN_ITEMS)]
                return {name: self._stand_in(value, name) for name in names}
            case shapes.Record(fields=fields):
                return {
                    field.name: self._stand_in(field.shape, f"{label} {field.name}")
                    for field in fields
                    if field.required
                }
            case shapes.Union(options=options) if all(isinstance(one, shapes.Constant) for one in options):
                return self._stand_in(choose.choice(options), label)
            case shapes.Union(options=options):
                return self._stand_in(next(one for one in options if not isinstance(one, shapes.Recursive)), label)
        return self._written(shape, choose)

    def _written(self, shape: Shape, choose: Random) -> Any:
        """A short value of a shape: some tokens that close nothing, and the shortest end."""
        state = compile_constraint(shape, self.tokenizer.vocabulary).start()
        tokens: list[int] = []
        while len(tokens) < STAND_IN_TOKENS and not state.is_done():
            ways = state.forced()[:1] or _open_ends(state)
            if not ways:
                break
            tokens.append(choose.choice(ways))
            state.advance(tokens[-1])
        return read(shape, self.tokenizer.decode([*tokens, *(shortest_end(state, LONGEST_CONTEXT) or [])]))


@dataclass(frozen=True)
class _Played:
    """One rehearsal. A row that fails costs what it took until then.

    Attributes:
        figures: by name.
        succeeded: rows that came to their end.
        fault: why a row failed, where one did.
    """

    figures: dict[str, float]
    succeeded: int
    fault: RunError | None


def _bounds(low: float | None, high: float | None) -> tuple[Any, Any]:
    """Between which numbers one is stood in for; not far apart, where only one of them is given."""
    least = min(0, high - STAND_IN_SPAN if high is not None else 0) if low is None else low
    return least, least + STAND_IN_SPAN if high is None else high


def _open_ends(state: State) -> list[int]:
    """The legal tokens that close nothing; only letters and digits, where there are any."""
    texts = state.vocabulary.token_bytes
    legal = [token for token in state.vocabulary.tokens_of(state.mask()) if not re.search(rb'["}\]]', texts[token])]
    return [token for token in legal if re.fullmatch(rb"[A-Za-z0-9]+", texts[token])] or legal


def _requires(haste: float) -> Requires:
    """Whether a `require` is met at once, takes all its retries, or asks its condition."""
    if haste == ALWAYS:
        return "met"
    return "exhausted" if haste == NEVER else "asked"


def _ends(values: list[Any]) -> tuple[Any, Any]:
    return min(values), max(values)
