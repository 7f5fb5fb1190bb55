"""Runs programs on a loaded model. Importing this loads torch."""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any, TextIO

from promptlang.cli.errors import CommandError, ExitCode
from promptlang.cli.report import Fault, as_error, line_of, numbers, pretty
from promptlang.cli.rows import Row, RowWriter
from promptlang.cli.run import Job
from promptlang.cli.stream import ConversationView, LogView
from promptlang.diagnostics.rendering import excerpt
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.run import Outcome, RunError
from promptlang.interpreter.tasks import Task
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.models.loading import load
from promptlang.runtime.models.model import ModelError
from promptlang.runtime.requests import RequestError
from promptlang.runtime.usage import Usage
from promptlang.values.conversion import to_json
from promptlang.values.values import Value

ROWS_AT_ONCE = 32


@dataclass
class Session:
    """A job with its model.

    Attributes:
        total: the numbers of the whole command.
        weights: what the model's weights are kept in.
    """

    job: Job
    interpreter: Interpreter
    total: Usage
    weights: str

    @classmethod
    def open(cls, job: Job, tell: Callable[[str], None]) -> "Session":
        """Load the model.

        Args:
            tell: told in a few words what takes long.

        Raises:
            CommandError: there is no such model, or the KV budget is too small.
        """
        options = job.options
        try:
            loaded = load(options.model, dtype=options.dtype, one_layout=options.deterministic, progress=tell)
            engine = Engine(loaded, EngineOptions(kv_bytes=options.kv_budget, shares=not options.no_cache))
        except (ModelError, RequestError) as error:
            raise CommandError(str(error)) from error
        engine.usage.load_seconds = perf_counter() - job.started
        return cls(
            job,
            Interpreter(LocalBackend(engine), job.graphs, options.seed, job.tools),
            engine.usage,
            loaded.model.weights,
        )

    # One run -----------------------------------------------------------------------------------------

    def run_once(self, arguments: dict[str, Value]) -> ExitCode:
        """Run the program, show what was asked for, and end with the line of numbers."""
        view = self._view()
        usage = Usage(load_seconds=self.total.load_seconds)
        task = self.interpreter.start(self.job.name, arguments, observer=view, usage=usage)
        fault = None
        try:
            outcome = self.interpreter.wait(task)
        except RunError as error:
            fault = Fault.at(error.span, error.message, error.path)
            place = excerpt(error.span)
        finally:
            if isinstance(view, ConversationView):
                view.finish()
        if fault is not None:
            print(fault, *place, sep="\n", file=sys.stderr)
        if self.job.options.json:
            print(line_of(self._report(usage, fault or outcome)), file=self.job.stdout)
        elif fault is None:
            print(pretty(outcome.result), file=self.job.stdout)
        self.job.stdout.flush()
        self._close(usage)
        return ExitCode.DONE if fault is None else ExitCode.FAILED

    def _view(self) -> ConversationView | LogView:
        options, console = self.job.options, self.job.console
        on_terminal = console.is_terminal and self.job.stdout.isatty() and not options.json
        return (
            ConversationView(console)
            if options.stream or (options.stream is None and on_terminal)
            else LogView(console)
        )

    def _report(self, usage: Usage, end: Outcome | Fault) -> dict[str, Any]:
        """The JSON object of one run."""
        if isinstance(end, Fault):
            ending = as_error(end)
        else:
            ending = {"result": to_json(end.result), "variables": to_json(end.variables)}
        options = self.job.options
        return {
            "program": self.job.name,
            **ending,
            "usage": {**usage.as_dict(), "weights": self.weights},
            "model": options.model,
            "seed": options.seed,
        }

    def _close(self, usage: Usage) -> None:
        print(numbers(usage, perf_counter() - self.job.started), file=sys.stderr)

    # Rows of data ------------------------------------------------------------------------------------

    def run_rows(self, rows: Sequence[Row], out: Path | None) -> ExitCode:
        """Run the program once a row, many at once, and write the results in order.

        Args:
            rows: of data; broken ones are reported in their place.
            out: takes the results, after what it holds if the command resumes; None for stdout.
        """
        failed = written = 0
        try:
            with self._opened(out) as stream, self._progress(len(rows)) as tell:
                writer = RowWriter(stream)
                for number, report in self._results(rows):
                    writer.write({"row": number, **report})
                    failed += "error" in report
                    written += 1
                    tell(written)
        except KeyboardInterrupt:
            print(f"promptlang: interrupted; {written} of {len(rows)} rows are written", file=sys.stderr)
            return ExitCode.INTERRUPTED
        if failed:
            print(f"{failed} of {len(rows)} rows failed", file=sys.stderr)
        self._close(self.total)
        return ExitCode.FAILED if failed else ExitCode.DONE

    @contextmanager
    def _progress(self, count: int) -> Iterator[Callable[[int], None]]:
        """Count rows on a terminal, unless it shows the rows themselves."""
        console = self.job.console
        if not console.is_terminal or (self.job.options.out is None and self.job.stdout.isatty()):
            yield lambda written: None
            return
        with console.status(f"0 of {count} rows") as status:
            yield lambda written: status.update(f"{written} of {count} rows")

    def _results(self, rows: Sequence[Row]) -> Iterator[tuple[int, dict[str, Any]]]:
        """The report of every row, in order, as soon as it is there."""
        running = _RowsAtOnce(rows, self._start)
        for row in rows:
            if row.fault is not None:
                yield row.number, self._report(Usage(), row.fault)
                continue
            task, usage = running.take(row)
            end: Outcome | Fault
            try:
                end = self.interpreter.wait(task)
            except RunError as error:
                end = Fault.at(error.span, error.message, error.path)
            self.total.add_tokens(usage)
            yield row.number, self._report(usage, end)

    @contextmanager
    def _opened(self, out: Path | None) -> Iterator[TextIO]:
        if out is None:
            yield self.job.stdout
            return
        try:
            stream = out.open("a" if self.job.options.resume else "w", encoding="utf-8")
        except OSError as error:
            raise CommandError(f"--out: {out} can't be written: {error.strerror}") from error
        with stream:
            yield stream

    def _start(self, row: Row, more_follow: bool) -> tuple[Task[Outcome], Usage]:
        assert row.arguments is not None
        usage = Usage()
        view = LogView(self.job.console)
        return self.interpreter.start(self.job.name, row.arguments, row.number, view, usage, more_follow), usage


class _RowsAtOnce:
    """Keeps rows running: whenever one ends, the next begins.

    Args:
        rows: in order; broken ones don't run.
        start: begins a row; told whether more follow.
    """

    def __init__(self, rows: Sequence[Row], start: Callable[[Row, bool], tuple[Task[Outcome], Usage]]) -> None:
        self._waiting = deque(row for row in rows if row.fault is None)
        self._begun: dict[int, tuple[Task[Outcome], Usage]] = {}
        self._start = start
        for _ in range(ROWS_AT_ONCE):
            self._begin_next()

    def take(self, row: Row) -> tuple[Task[Outcome], Usage]:
        """The run of a row; all rows before it have ended."""
        return self._begun.pop(row.number)

    def _begin_next(self) -> None:
        if self._waiting:
            row = self._waiting.popleft()
            task, usage = self._start(row, bool(self._waiting))
            self._begun[row.number] = task, usage
            task.when_done(self._begin_next)
