"""`promptlang check --cost`: what programs will cost, as a table or as JSON."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from promptlang.cli.arguments import named_texts
from promptlang.cli.errors import CommandError
from promptlang.cost.errors import CostError
from promptlang.cost.tokenizer import counting_tokenizer
from promptlang.grammar.errors import ConstraintError
from promptlang.runtime.text.tokenizer import Tokenizer
from promptlang.session.program import Program
from promptlang.session.program_file import ProgramFile
from promptlang.session.rows import ROWS_AT_ONCE
from promptlang.values.conversion import ArgumentsError

if TYPE_CHECKING:
    from promptlang.cost.estimate import Estimate, Range


def estimates(files: Mapping[str, ProgramFile], rows: int, pairs: Sequence[str]) -> "dict[str, dict[str, Estimate]]":
    """What each program of each file costs.

    Args:
        files: without errors, by name.
        rows: how often each program runs.
        pairs: the `NAME=VALUE` of each `--arg`, for the programs that have such a parameter; what is not given is stood
            in for.

    Raises:
        CommandError: an argument is wrong or no program's, the embedded model is missing, or a program can't be
            rehearsed.
    """
    texts = named_texts(pairs)
    programs = {file: _programs(found) for file, found in files.items()}
    _refuse_unknown(texts, [one for inside in programs.values() for one in inside])
    try:
        tokenizer = counting_tokenizer()
    except CostError as error:
        raise CommandError(f"--cost: {error}") from error
    return {
        file: {one.name: _estimate(one, rows, texts, tokenizer) for one in inside} for file, inside in programs.items()
    }


def _programs(file: ProgramFile) -> list[Program]:
    graphs = file.optimised().graphs
    return [Program(name, graphs) for name in file.names]


def _estimate(program: Program, rows: int, texts: Mapping[str, str], tokenizer: Tokenizer) -> "Estimate":
    from promptlang.cost.estimate import Rehearsal  # loads torch

    own = {name: text for name, text in texts.items() if name in program.graph.shapes}
    try:
        rehearsal = Rehearsal(program.graphs, program.name, program.typed(own), tokenizer, ROWS_AT_ONCE)
        return rehearsal.estimate(rows)
    except (ArgumentsError, ConstraintError, CostError) as error:
        raise CommandError(f"--cost: {error}") from error


def _refuse_unknown(names: Iterable[str], programs: Sequence[Program]) -> None:
    for name in names:
        if not any(name in program.graph.shapes for program in programs):
            takes = "; ".join(f"{program.name}: {program.signature}" for program in programs)
            raise CommandError(f"no program has an argument {name!r}; {takes}")


def as_json(found: "dict[str, dict[str, Estimate]]") -> str:
    """Estimates by file and program, as JSON."""
    return json.dumps({file: {name: _data(one) for name, one in inside.items()} for file, inside in found.items()})


def print_table(file: str, name: str, estimate: "Estimate") -> None:
    """One program's estimate, on stdout."""
    rows = "1 row" if estimate.rows == 1 else f"{estimate.rows} rows"
    table = Table(show_header=False, box=None)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for figure, between in estimate.figures.items():
        table.add_row(figure.replace("_", " "), _shown(between, "{:,.0f}"))
    table.add_row("cached share", _shown(estimate.cached_share, "{:.0%}"))
    for argument, tokens in estimate.assumed.items():
        table.add_row(f"assumed: {argument}", f"{tokens} tokens")
    print(f"{file}: {name}, {rows}")
    Console(highlight=False).print(table)


def _shown(between: "Range", form: str) -> str:
    low, high = form.format(between.low), form.format(between.high)
    return low if low == high else f"{low} to {high}"


def _data(estimate: "Estimate") -> dict[str, Any]:
    ranges = {**estimate.figures, "cached_share": estimate.cached_share}
    figures = {name: {"low": one.low, "high": one.high} for name, one in ranges.items()}
    return {"rows": estimate.rows, "figures": figures, "assumed": estimate.assumed}
