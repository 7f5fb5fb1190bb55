"""`promptlang run FILE --help`: what a file's programs do, and what they take."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Console
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from promptlang.checker.tables import ProgramInfo
from promptlang.cli.arguments import choice
from promptlang.cli.check import checked, show
from promptlang.cli.errors import CommandError, ExitCode
from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape, describe
from promptlang.interpreter.host_functions import tools_of
from promptlang.session.program_file import ChoiceError, ProgramFile
from promptlang.syntax import ast

INDENT = 2


def program_help(file: str, name: str | None) -> ExitCode:
    """Print what a file says of itself, and what one of its programs takes; where there are several and none is meant,
    a list of them.

    Args:
        file: the program's path.
        name: of the program, where the command line gives one.
    """
    found = checked(file)
    if not found.is_ok:
        show(found.diagnostics)
        return ExitCode.WRONG
    _Help(found, Console(highlight=False)).print(name)
    return ExitCode.DONE


class _Help:
    """Writes the help of one file."""

    def __init__(self, file: ProgramFile, console: Console) -> None:
        self._file = file
        self._doc = file.bundle.main.module.doc
        self._console = console
        declarations = [item for unit in file.bundle.units for item in unit.module.declarations]
        self._records = {_key(item): item for item in declarations if isinstance(item, ast.Record)}
        self._tool_docs = {item.name: item.doc for item in declarations if isinstance(item, ast.Tool)}

    def print(self, name: str | None) -> None:
        several = len(self._file.names) > 1 and "main" not in self._file.names
        if name is None and several:
            self._all()
            return
        try:
            self._one(self._programs[self._file.choose(name)])
        except ChoiceError as error:
            raise CommandError(choice(error)) from error

    @property
    def _programs(self) -> Mapping[str, ProgramInfo]:
        return self._file.checked.programs

    def _all(self) -> None:
        self._write(f"promptlang run {self._file.name} --program NAME [--arg NAME=VALUE ...]")
        self._text(self._doc)
        programs = [self._programs[name] for name in self._file.names]
        self._section("Programs", [(info.name, _first_line(info.declaration.doc)) for info in programs])
        self._text("Add --program NAME to --help to see what it takes.")

    def _one(self, info: ProgramInfo) -> None:
        parameters = info.declaration.parameters
        named = f" --program {info.name}" if len(self._file.names) > 1 else ""
        self._write(f"promptlang run {self._file.name}{named}{''.join(map(_usage, parameters))}")
        self._text(self._doc)
        self._text(info.declaration.doc)
        self._section("Arguments", [_row(one, info.shapes[one.name], "required") for one in parameters])
        if not parameters:
            self._text("It takes no arguments.")
        if not all(map(_is_bare, info.shapes.values())):
            self._text("Text, numbers, true, false and none are given as they are; lists, dicts and records as JSON.")
        if info.returns is not None:
            self._section("Result", [(describe(info.returns),)])
        for record in _records_in([*info.shapes.values(), *([] if info.returns is None else [info.returns])]):
            self._record(record)
        self._tools(info)

    def _record(self, record: shapes.Record) -> None:
        declaration = self._records[_key(record)]
        by_name = {field.name: field.shape for field in record.fields}
        rows = [_row(field, by_name[field.name], "") for field in declaration.fields]
        self._section(f"Fields of {record.name}", rows, declaration.doc)

    def _tools(self, info: ProgramInfo) -> None:
        graphs = self._file.graphs
        rows = [
            (
                f"{tool.name}({', '.join(parameter.name for parameter in tool.parameters)})",
                describe(tool.returns),
                self._tool_docs[tool.name] or "",
            )
            for tool in tools_of(graphs[info.name], graphs)
        ]
        self._section("Tools, to be given with --tools FILE.py", rows)

    def _section(self, title: str, rows: Sequence[tuple[str, ...]], doc: str | None = None) -> None:
        """A title over a table; nothing where there are no rows."""
        if not rows:
            return
        self._write("")
        self._write(f"{title}:")
        if doc:
            self._console.print(Padding(Text(doc), (0, 0, 0, INDENT), expand=False))
        table = Table.grid(*[Column(overflow="fold") for _ in rows[0]], padding=(0, 2))
        for row in rows:
            table.add_row(*map(Text, row))
        self._console.print(Padding(table, (0, 0, 0, INDENT)))

    def _text(self, text: str | None) -> None:
        if text:
            self._write("")
            self._write(text.strip())

    def _write(self, text: str) -> None:
        self._console.print(Text(text))


def _usage(parameter: ast.Parameter) -> str:
    given = f"--arg {parameter.name}=VALUE"
    return f" {given}" if parameter.default is None else f" [{given}]"


def _key(record: ast.Record | shapes.Record) -> tuple[str, ...]:
    """What tells records apart: two files may each have one of the same name."""
    return record.name, *(field.name for field in record.fields)


def _row(parameter: ast.Parameter, shape: Shape, without_default: str) -> tuple[str, ...]:
    """A parameter or a field: its name, its type, its default, and its documentation."""
    default = without_default if parameter.default is None else f"default {_first_line(parameter.default.span.text)}"
    return parameter.name, describe(shape), default, parameter.doc or ""


def _first_line(text: str | None) -> str:
    return (text or "").strip().partition("\n")[0]


def _is_bare(shape: Shape) -> bool:
    """Whether a value of the shape is given as plain text."""
    if isinstance(shape, shapes.Union):
        return all(map(_is_bare, shape.options))
    return not isinstance(shape, shapes.List | shapes.Dict | shapes.Record | shapes.AnyJson | shapes.Schema)


def _records_in(found: Iterable[Shape]) -> list[shapes.Record]:
    """The records in some shapes, in the order in which they are met."""
    records: Mapping[str, shapes.Record] = {record.name: record for shape in found for record in _inside(shape)}
    return list(records.values())


def _inside(shape: Shape) -> Iterator[shapes.Record]:
    match shape:
        case shapes.Union(options=options):
            for option in options:
                yield from _inside(option)
        case shapes.List(item=inner) | shapes.Dict(value=inner):
            yield from _inside(inner)
        case shapes.Record(fields=fields):
            yield shape
            for field in fields:
                yield from _inside(field.shape)
