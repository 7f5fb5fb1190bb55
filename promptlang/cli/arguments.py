"""Which program, and its arguments from the command line and from rows of data."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from promptlang.checker.tables import Checked
from promptlang.cli.errors import CommandError
from promptlang.compiler.graph import Graph
from promptlang.grammar.reader import read
from promptlang.grammar.shapes import Shape
from promptlang.values.conversion import ArgumentsError


def chosen(program: Checked, file: str, name: str | None) -> str:
    """The name of the program to run.

    Args:
        program: the checked file.
        file: its path, for messages.
        name: as `--program` gives it.

    Raises:
        CommandError: there is no such program, or it is not clear which is meant.
    """
    listed = ", ".join(program.main)
    if name is not None:
        if name not in program.main:
            raise CommandError(f"{file} has no program {name!r}; it has {listed or 'none'}")
        return name
    if len(program.main) == 1:
        return program.main[0]
    if "main" in program.main:
        return "main"
    if not program.main:
        raise CommandError(f"{file} has no program; write `program main():` and a block")
    raise CommandError(f"{file} has several programs; choose with --program: {listed}")


def common_arguments(graph: Graph, pairs: Sequence[str], args: str | None) -> dict[str, Any]:
    """What `--args` and `--arg` give; `--arg` wins.

    Args:
        graph: the program that takes them.
        pairs: the `NAME=VALUE` of each `--arg`.
        args: the value of `--args`: JSON, or `@` and a file that holds it.

    Returns:
        JSON data by parameter name, not validated.

    Raises:
        CommandError: they can't be read, or the program has no such parameter.
    """
    given = {} if args is None else _json_arguments(args)
    named: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise CommandError(f"--arg {pair} has no value; write --arg {pair}=VALUE")
        if name in named:
            raise CommandError(f"--arg {name} is given twice")
        named[name] = value
    unknown = [name for name in (*given, *named) if name not in graph.shapes]
    if unknown:
        raise CommandError(f"{graph.name} has no argument {unknown[0]!r}; {signature(graph)}")
    try:
        return {**given, **typed(graph, named)}
    except ArgumentsError as error:
        raise CommandError(str(error)) from error


def signature(graph: Graph) -> str:
    """What a program takes, for messages."""
    if not graph.parameters:
        return "it takes none"
    return f"it takes {', '.join(parameter.span.text for parameter in graph.parameters)}"


def typed(graph: Graph, texts: Mapping[str, str]) -> dict[str, Any]:
    """Arguments written as text (on the command line, in a CSV cell) as the data their parameters ask for.

    Scalars stand bare, all else is JSON. Names that are no parameters keep their text.

    Raises:
        ArgumentsError: a text is no value of its parameter's type.
    """
    return {
        name: _data(graph.shapes[name], text, name) if name in graph.shapes else text for name, text in texts.items()
    }


def _data(shape: Shape, text: str, name: str) -> Any:
    try:
        return read(shape, text)
    except ValueError as error:
        raise ArgumentsError(f"the argument {name!r} does not fit: {error}") from error


def parse_json(text: str) -> Any:
    """Strict JSON.

    Raises:
        ValueError: it is none; says what and where.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _json_arguments(args: str) -> dict[str, Any]:
    text = args
    if args.startswith("@"):
        try:
            text = Path(args[1:]).read_text(encoding="utf-8-sig")
        except OSError as error:
            raise CommandError(f"--args: {args[1:]} can't be read: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise CommandError(f"--args: {args[1:]} is not UTF-8") from error
    try:
        data = parse_json(text)
    except ValueError as error:
        raise CommandError(f"--args takes a JSON object, or @FILE with one: {error}") from error
    if not isinstance(data, dict):
        raise CommandError("--args takes a JSON object with the arguments by name")
    return data
