"""`promptlang run`: everything that must be right before a model is loaded."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TextIO

from rich.console import Console

from promptlang.cli.ahead import compile_ahead
from promptlang.cli.arguments import chosen, common_arguments, signature
from promptlang.cli.check import checked, show
from promptlang.cli.errors import CommandError, ExitCode
from promptlang.cli.passes import optimised
from promptlang.cli.rows import read_rows, rows_in
from promptlang.compiler.graph import Graph
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.ahead import options_ahead, shapes_ahead
from promptlang.interpreter.host_functions import (
    ToolError,
    ToolFunction,
    functions_of,
    load_functions,
    python_signature,
    tools_of,
)
from promptlang.values.conversion import ArgumentsError, bind_arguments

if TYPE_CHECKING:
    from promptlang.cli.execution import Session


@dataclass(frozen=True)
class RunOptions:
    """What the command line asks for; names as there."""

    file: str
    program: str | None
    arg: list[str]
    args: str | None
    data: str | None
    out: str | None
    resume: bool
    model: str
    dtype: str
    deterministic: bool
    seed: int
    json: bool
    stream: bool | None
    no_cache: bool
    kv_budget: int | None
    tools: str | None
    passes: str


@dataclass(frozen=True)
class Job:
    """A program that is ready to run.

    Attributes:
        graphs: of all programs of its file and its imports.
        name: which of them.
        started: when the command began, on the clock of `perf_counter`.
        console: for people; on stderr.
        stdout: for results alone; what tools and libraries print goes to stderr.
        tools: the functions of the tools that the program may call, by name.
    """

    options: RunOptions
    graphs: dict[str, Graph]
    name: str
    started: float
    console: Console
    stdout: TextIO
    tools: dict[str, ToolFunction]

    @property
    def graph(self) -> Graph:
        return self.graphs[self.name]

    @contextmanager
    def loading(self) -> Iterator[Callable[[str], None]]:
        """Say on a terminal that the model is being loaded; gives a function that says what exactly."""
        if not self.console.is_terminal:
            yield lambda message: None
            return
        with self.console.status(f"loading {self.options.model}") as status:
            yield lambda message: status.update(message)


def run(options: RunOptions) -> ExitCode:
    """Check a program, bind its arguments, then run it."""
    started = perf_counter()
    _refuse_contradictions(options)
    program = checked(options.file)
    if not program.ok:
        show(program.diagnostics)
        return ExitCode.WRONG
    graphs = optimised(lower(program), options.passes).graphs
    name = chosen(program, options.file, options.program)
    console, stdout = Console(stderr=True, highlight=False), sys.stdout
    with redirect_stdout(sys.stderr):
        job = Job(options, graphs, name, started, console, stdout, _tool_functions(graphs, name, options.tools))
        common = common_arguments(job.graph, options.arg, options.args)
        return _run_once(job, common) if options.data is None else _run_rows(job, options.data, common)


def _tool_functions(graphs: dict[str, Graph], name: str, file: str | None) -> dict[str, ToolFunction]:
    """The functions of the tools that a program may call."""
    needed = tools_of(graphs[name], graphs)
    if needed and file is None:
        raise CommandError(f"{name} calls tools; give --tools FILE.py with {_listed(map(python_signature, needed))}")
    try:
        return functions_of(needed, {} if file is None else load_functions(file))
    except ToolError as error:
        raise CommandError(f"--tools: {error}") from error


def _listed(items: Iterable[str]) -> str:
    return ", ".join(f"`{item}`" for item in items)


def _refuse_contradictions(options: RunOptions) -> None:
    if options.out is not None and options.data is None:
        raise CommandError("--out holds the rows of --data; give --data too, or send stdout to a file")
    if options.resume and options.out is None:
        raise CommandError("--resume goes on with an --out file; give --out too")
    if options.stream and options.data is not None:
        raise CommandError("--stream shows one conversation; leave it out with --data")
    if options.out is not None and options.data not in (None, "-") and _same_file(options.out, options.data):
        raise CommandError("--out would overwrite the file of --data; name another")
    if options.out is not None and (Path(options.out).is_dir() or not Path(options.out).parent.is_dir()):
        raise CommandError(f"--out: {options.out} can't be written: it is a folder, or its folder is missing")


def _same_file(one: str, other: str | None) -> bool:
    return other is not None and Path(one).resolve() == Path(other).resolve()


def _run_once(job: Job, given: dict[str, Any]) -> ExitCode:
    try:
        arguments = bind_arguments(job.graph, given)
    except ArgumentsError as error:
        raise CommandError(f"{error}; {signature(job.graph)}; give --arg NAME=VALUE") from error
    return _session(job).run_once(arguments)


def _run_rows(job: Job, source: str, common: dict[str, Any]) -> ExitCode:
    rows = read_rows(source, job.graph, common)
    out = Path(job.options.out) if job.options.out is not None else None
    done = rows_in(out) if out is not None and job.options.resume else set()
    return _session(job).run_rows([row for row in rows if row.number not in done], out)


def _session(job: Job) -> "Session":
    """The job with its model loaded, its constraints compiled and its options encoded."""
    compiling = compile_ahead(
        shapes_ahead(job.graph, job.graphs), options_ahead(job.graph, job.graphs), job.options.model
    )
    with job.loading() as tell:
        from promptlang.cli.execution import Session

        session = Session.open(job, tell)
        compiling.join()
    return session
