"""A program's runs over rows of data, and what is written of them."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TextIO

from promptlang.cli.data import Row
from promptlang.cli.errors import ExitCode
from promptlang.cli.output import Output
from promptlang.cli.report import Fault, Heading
from promptlang.cli.results import ResultsFile, RowWriter
from promptlang.cli.stream import LogView, log_view
from promptlang.interpreter.run import Outcome, RunError
from promptlang.runtime.usage import Usage
from promptlang.session.rows import Ended
from promptlang.session.runner import Runner
from promptlang.session.session import Session
from promptlang.values.conversion import ArgumentsError


def run_rows(
    session: Session,
    runner: Runner,
    rows: Sequence[Row],
    heading: Heading,
    output: Output,
    out: ResultsFile | None,
    *,
    shows_prompts: bool,
) -> ExitCode:
    """Run a program once a row, many at once, and write the results in order.

    Args:
        session: open.
        runner: of the program.
        rows: of data; broken ones are reported in their place.
        heading: of the reports.
        output: of the command.
        out: takes the results; None for stdout.
        shows_prompts: whether to show what the model is asked about.
    """
    failed = written = 0
    view = log_view(output.console, shows_prompts, has_rows=True)
    target: AbstractContextManager[TextIO] = nullcontext(output.stdout) if out is None else out.opened()
    try:
        with target as stream, _progress(output, len(rows), to_file=out is not None) as tell:
            writer = RowWriter(stream, "stdout" if out is None else f"--out: {out.path}")
            for row, report in _reports(session, runner, rows, heading, view):
                writer.write({"row": row.number, **report, "data": row.digest})
                failed += "error" in report
                written += 1
                tell(written)
    except KeyboardInterrupt:
        print(f"promptlang: interrupted; {written} of {len(rows)} rows are written", file=sys.stderr)
        return ExitCode.INTERRUPTED
    if failed:
        print(f"{failed} of {len(rows)} rows failed", file=sys.stderr)
    output.close(session.usage)
    return ExitCode.FAILED if failed else ExitCode.DONE


@contextmanager
def _progress(output: Output, count: int, *, to_file: bool) -> Iterator[Callable[[int], None]]:
    """Count rows on a terminal, unless it shows the rows themselves."""
    if output.is_terminal and not to_file:
        yield lambda written: None
        return
    with output.status(f"0 of {count} rows") as tell:
        yield lambda written: tell(f"{written} of {count} rows")


def _reports(
    session: Session, runner: Runner, rows: Sequence[Row], heading: Heading, view: LogView
) -> Iterator[tuple[Row, dict[str, Any]]]:
    """The report of every row, in order, as soon as it is there."""
    readable = ((row.number, row.read) for row in rows if not isinstance(row.read, Fault))
    ends = runner.rows(readable, observer=view)
    for row in rows:
        if isinstance(row.read, Fault):
            yield row, heading.report(row.read, Usage(), session.weights)
        else:
            ended = next(ends)
            yield row, heading.report(_end(row, ended), ended.usage, session.weights)


def _end(row: Row, ended: Ended) -> Outcome | Fault:
    match ended.end:
        case RunError() as error:
            return Fault.at(error.span, error.message, error.path)
        case ArgumentsError() as error:
            return row.fault(str(error))
        case Outcome() as outcome:
            return outcome
