"""Programs of files and of source text, as functions."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from promptlang.api.any_program import Execution, How, Outcome
from promptlang.api.data import to_data
from promptlang.api.errors import ArgumentsError, ChoiceError, ProgramError, RunError
from promptlang.api.graphs import GraphView
from promptlang.api.hub import current_strand
from promptlang.api.program import Program
from promptlang.api.records import RecordClass, file_records, to_python
from promptlang.api.speech import Pending, Speech
from promptlang.compiler.graph import Graph
from promptlang.cost.tokenizer import counting_tokenizer
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.drawing.picture import picture
from promptlang.drawing.tokens import token_counter
from promptlang.interpreter import run
from promptlang.interpreter.programs import run_program
from promptlang.interpreter.run import Frame
from promptlang.session import program as ready
from promptlang.session.program_file import ProgramFile
from promptlang.session.rows import ROWS_AT_ONCE
from promptlang.values.conversion import to_json
from promptlang.values.expressions import evaluate
from promptlang.values.values import Value

if TYPE_CHECKING:
    from promptlang.cost.estimate import Estimate


class FileProgram(Program[..., Any]):
    """A program of a file.

    Args:
        file: checked, and without errors.
        program: of it, after its passes.
        how: it is run.
    """

    def __init__(self, file: ProgramFile, program: ready.Program, how: How | None = None) -> None:
        super().__init__(program.name, how or How())
        self._file = file
        self._program = program
        self.__doc__ = file.checked.programs[program.name].declaration.doc

    def _with(self, how: How) -> Self:
        return type(self)(self._file, self._program, how)

    def __reduce__(self) -> Any:
        return _read_again, (self._file.name, self._file.text, self.__name__, self._how)

    @cached_property
    def __signature__(self) -> inspect.Signature:
        return _signature(self._program.graph)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of what it takes."""
        return tuple(one.name for one in self._program.graph.parameters)

    @property
    def records(self) -> Mapping[str, RecordClass]:
        """The classes of its file's records, by name."""
        return file_records(self._file).classes

    # What it is before it runs -------------------------------------------------------------------------------

    def check(self) -> list[Diagnostic]:
        """What was found in its file: warnings, for a file with errors has no programs."""
        return self._file.diagnostics

    def graph(self) -> GraphView:
        """Its execution graph, after its passes."""
        optimised = self._file.optimised()
        name = self.__name__
        return GraphView(picture(optimised.graphs[name], optimised.findings[name], token_counter()))

    def cost(self, rows: int = 1, /, **arguments: Any) -> "Estimate":
        """What it will cost, without a model; each figure is a range.

        Args:
            rows: how often it runs.
            arguments: those that are known; what is not given is stood in for.

        Raises:
            CostError: it can't be rehearsed.
        """
        from promptlang.cost.estimate import Rehearsal  # loads torch

        data = {name: to_data(value) for name, value in arguments.items()}
        rehearsal = Rehearsal(self._program.graphs, self.__name__, data, counting_tokenizer(), ROWS_AT_ONCE)
        return rehearsal.estimate(rows)

    # Running -------------------------------------------------------------------------------------------------

    def bound(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """Arguments as data, by name; whether they fit was seen."""
        names = [parameter.name for parameter in self._program.graph.parameters]
        if len(args) > len(names):
            raise ArgumentsError(f"{self.__name__} takes {len(names)} arguments, not {len(args)}")
        twice = next((name for name in names[: len(args)] if name in kwargs), None)
        if twice is not None:
            raise ArgumentsError(f"{self.__name__} got the argument {twice!r} twice")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        data = {name: to_data(value) for name, value in given.items()}
        self._program.bind(data)
        return data

    def _execute(self, bound: dict[str, Any], execution: Execution) -> Outcome[Any]:
        strand = current_strand()
        assert strand is not None
        runner = execution.engine.runner(self._program, execution.seed, self._how.tools)
        started = runner.start(bound, execution.row, execution.observer, execution.usage, execution.more_follow)
        try:
            outcome = strand.wait(started.task)
        except run.RunError as error:
            raise RunError.of(error) from None
        finally:
            if not started.task.is_done:
                runner.cancel(started)
        variables = {name: self._read(value) for name, value in outcome.variables.items()}
        return Outcome(self._read(outcome.result), variables, tuple(outcome.messages), execution.usage)

    @property
    def reader(self) -> Callable[[Value], Any]:
        return self._read

    def _read(self, value: Value) -> Any:
        """A value of the language as one of Python."""
        return to_python(self._file, value)

    def called_by(self, caller: Speech, /, *args: Any, **kwargs: Any) -> Pending[Any]:
        bound = self._program.bind(self.bound(args, kwargs))
        statements = caller._statements
        functions = self._program.functions(self._how.tools)
        machine = replace(statements.live.machine, graphs=self._program.graphs, tools=functions)
        graph = self._program.graph

        async def called() -> Any:
            frame = statements.frame
            label = frame.call_label(graph.name)
            path, key = (*frame.path, label), (*frame.key, label)
            prompt = machine.new_prompt(frame.run, graph.name)
            result = await run_program(machine, Frame(frame.run, graph, prompt, bound, graph.constants, path, key))
            frame.run.observer.ended(path)
            return result

        return Pending(statements.live.spawn(called()), self._read)


class Programs(Mapping[str, FileProgram]):
    """The programs of a file, by name, as attributes too. Called, it is the one that is meant.

    Args:
        file: checked.

    Raises:
        ProgramError: it has errors.
    """

    def __init__(self, file: ProgramFile) -> None:
        if not file.is_ok:
            raise ProgramError(file.diagnostics)
        self._file = file
        self._programs: dict[str, FileProgram] = {}

    def __getitem__(self, name: str) -> FileProgram:
        if name not in self._file.names:
            raise KeyError(name)
        if name not in self._programs:
            self._programs[name] = FileProgram(self._file, self._file.program(name))
        return self._programs[name]

    def __getattr__(self, name: str) -> FileProgram:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(str(ChoiceError(self._file.name, name, self._file.names))) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._file.names)

    def __len__(self) -> int:
        return len(self._file.names)


def load(path: str | Path) -> FileProgram:
    """The program of a file, as a function; of several, `main`, and `load_all` gives the others.

    Args:
        path: of a `.pl` file.

    Raises:
        LoadError: it can't be read.
        ProgramError: it has errors; `str()` shows them.
        ChoiceError: it is not clear which program is meant.
    """
    return _chosen(ProgramFile.load(path))


def load_all(path: str | Path) -> Programs:
    """The programs of a file, each by its name: `programs.triage(...)`, `programs["triage"]`.

    Raises:
        LoadError, ProgramError: as `load`.
    """
    return Programs(ProgramFile.load(path))


def compile(text: str) -> FileProgram:
    """The program of a source text, as a function; it can't import.

    Raises:
        ProgramError, ChoiceError: as `load`.
    """
    return _chosen(ProgramFile.of_text(text))


def _chosen(file: ProgramFile) -> FileProgram:
    programs = Programs(file)
    return programs[file.choose()]


def _read_again(name: str, text: str | None, program: str, how: How) -> FileProgram:
    """A program in another process: of the same file, or of the same text."""
    file = ProgramFile.load(name) if text is None else ProgramFile.of_text(text, name)
    return Programs(file)[program]._with(how)


def _signature(graph: Graph) -> inspect.Signature:
    """What a program takes. A parameter that must be given goes by its name behind one that need not be; one that has a
    keyword of Python for a name can't be shown."""
    parameters: list[inspect.Parameter] = []
    kind: Any = inspect.Parameter.POSITIONAL_OR_KEYWORD
    has_default = False
    for one in graph.parameters:
        default: Any = inspect.Parameter.empty
        if one.default is not None:
            default = to_json(evaluate(one.default, graph.constants))
        elif has_default:
            kind = inspect.Parameter.KEYWORD_ONLY
        has_default = has_default or one.default is not None
        if not iskeyword(one.name):
            parameters.append(inspect.Parameter(one.name, kind, default=default))
    return inspect.Signature(parameters)
