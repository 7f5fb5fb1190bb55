"""`promptlang run`: everything that must be right before a model is loaded."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from promptlang.cli import garbage
from promptlang.cli.arguments import chosen, common_arguments, template_options
from promptlang.cli.check import checked, show
from promptlang.cli.data import Row, read_rows
from promptlang.cli.errors import CommandError, ExitCode
from promptlang.cli.files import refuse_overwriting
from promptlang.cli.once import run_once
from promptlang.cli.output import Output
from promptlang.cli.report import Heading
from promptlang.cli.results import ResultsFile
from promptlang.cli.rows import run_rows
from promptlang.interpreter.host_functions import ToolError, ToolFunction, load_functions, python_signature
from promptlang.session.program import Program
from promptlang.session.program_file import ProgramFile
from promptlang.session.runner import Runner
from promptlang.session.session import Session
from promptlang.session.settings import OpeningError, Settings
from promptlang.values.conversion import ArgumentsError
from promptlang.values.values import Value


@dataclass(frozen=True)
class RunOptions:
    """What the command line asks for; names as there.

    Attributes:
        started: when the command began, on the clock of `perf_counter`.
    """

    started: float
    file: str
    program: str | None
    arg: list[str]
    args: str | None
    data: str | None
    out: str | None
    resume: bool
    model: str
    device: str
    dtype: str | None
    deterministic: bool
    template_option: list[str]
    seed: int
    json: bool
    stream: bool | None
    show_prompt: bool
    no_cache: bool
    no_speculation: bool
    kv_budget: int | None
    tools: str | None
    passes: str

    @property
    def settings(self) -> Settings:
        """Of the session.

        Raises:
            CommandError: a template option can't be set.
        """
        try:
            return Settings(
                model=self.model,
                device=self.device,
                dtype=self.dtype,
                deterministic=self.deterministic,
                kv_bytes=self.kv_budget,
                shares=not self.no_cache,
                speculates=not self.no_speculation,
                template_options=template_options(self.template_option),
            )
        except OpeningError as error:
            raise CommandError(f"--template-option: {error}") from error


def run(options: RunOptions) -> ExitCode:
    """Check a program, bind its arguments, then run it."""
    output = Output(options.started)
    _refuse_contradictions(options)
    file = checked(options.file)
    if not file.is_ok:
        show(file.diagnostics)
        return ExitCode.WRONG
    if options.out is not None:
        refuse_overwriting(options.out, _read_by(options, file))
    program = chosen(file, options.program, options.passes)
    with output.apart() as output:
        command = _Command(options, options.settings, output, program, _tool_functions(program, options.tools))
        common = common_arguments(program, options.arg, options.args)
        return command.run_once(common) if options.data is None else command.run_rows(options.data, common)


def _tool_functions(program: Program, file: str | None) -> dict[str, ToolFunction]:
    """The functions of the tools that a program may call."""
    if program.tools and file is None:
        wanted = _listed(map(python_signature, program.tools))
        raise CommandError(f"{program.name} calls tools; give --tools FILE.py with {wanted}")
    try:
        return program.functions({} if file is None else load_functions(file))
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
    if options.stream and options.show_prompt:
        raise CommandError("--stream and --show-prompt both show what is said; leave one out")
    out = options.out
    if out in ("", "-"):
        raise CommandError("--out names a file; for stdout, leave it out")
    if out is not None and (os.path.isdir(out) or not os.path.isdir(os.path.dirname(out) or ".")):
        raise CommandError(f"--out: {out} can't be written: it is a folder, or its folder is missing")


def _read_by(options: RunOptions, file: ProgramFile) -> Iterator[tuple[str, str]]:
    """The files that a run reads: what each is to it, and its path."""
    for unit in file.bundle.units:
        yield "the program", unit.module.source.name
        for path in unit.files:
            yield "a schema or a grammar", str(path)
    given: dict[str, str | None] = {"--data": options.data, "--tools": options.tools}
    if os.path.isfile(options.model):
        given["--model"] = options.model
    if options.args is not None and options.args.startswith("@"):
        given["--args"] = options.args[1:]
    for role, file_given in given.items():
        if file_given not in (None, "-"):
            yield role, file_given


@dataclass(frozen=True)
class _Command:
    """A program that is ready to run, with what the command line says of the run."""

    options: RunOptions
    settings: Settings
    output: Output
    program: Program
    tools: dict[str, ToolFunction]

    def run_once(self, given: dict[str, Any]) -> ExitCode:
        arguments = self._bound(given)
        session, runner = self._opened()
        return run_once(
            session,
            runner,
            arguments,
            self._heading,
            self.output,
            json=self.options.json,
            streams=self.options.stream,
            shows_prompts=self.options.show_prompt,
        )

    def run_rows(self, source: str, common: dict[str, Any]) -> ExitCode:
        rows = read_rows(source, self.program, common)
        out = self._results(rows)
        left = rows if out is None else rows[out.rows :]
        session, runner = self._opened()
        return run_rows(session, runner, left, self._heading, self.output, out, shows_prompts=self.options.show_prompt)

    def _results(self, rows: Sequence[Row]) -> ResultsFile | None:
        if self.options.out is None:
            return None
        path = Path(self.options.out)
        out = ResultsFile.resumed(path, self._heading, rows) if self.options.resume else ResultsFile(path)
        out.refuse_unwritable()
        return out

    def _bound(self, given: dict[str, Any]) -> dict[str, Value]:
        try:
            return self.program.bind(given)
        except ArgumentsError as error:
            raise CommandError(f"{error}; {self.program.signature}; give --arg NAME=VALUE") from error

    def _opened(self) -> tuple[Session, Runner]:
        session = Session(self.settings)
        try:
            with self.output.status(f"loading {self.options.model}") as tell:
                session.open(tell, ahead=self.program)
            garbage.look_from_now_on()
        except OpeningError as error:
            raise CommandError(str(error)) from error
        for said in session.unread_options:
            print(f"promptlang: warning: {said}", file=sys.stderr)
        return session, session.runner(self.program, self.options.seed, self.tools)

    @property
    def _heading(self) -> Heading:
        return Heading(self.program.name, self.options.model, self.options.seed, self.settings.template_options)
