"""Which program, and its arguments from the command line and from rows of data."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from promptlang.cli.errors import CommandError
from promptlang.cli.files import refuse_special
from promptlang.cli.passes import passes_named
from promptlang.session.program import Program
from promptlang.session.program_file import ChoiceError, ProgramFile
from promptlang.values.conversion import ArgumentsError


def chosen(file: ProgramFile, name: str | None, passes: str) -> Program:
    """The program to run.

    Args:
        file: without errors.
        name: as `--program` gives it.
        passes: as `--passes` names them.

    Raises:
        CommandError: there is no such program or pass, or it is not clear which program is meant.
    """
    named = passes_named(passes)
    try:
        return file.program(name, named)
    except ChoiceError as error:
        raise CommandError(choice(error)) from error


def choice(error: ChoiceError) -> str:
    """What a command says where it is not clear which program is meant."""
    if error.name is None and error.names:
        return f"{error.file} has several programs; choose with --program: {', '.join(error.names)}"
    return str(error)


def common_arguments(program: Program, pairs: Sequence[str], args: str | None) -> dict[str, Any]:
    """What `--args` and `--arg` give; `--arg` wins.

    Args:
        program: takes them.
        pairs: the `NAME=VALUE` of each `--arg`.
        args: the value of `--args`: JSON, or `@` and a file that holds it.

    Returns:
        JSON data by parameter name, not validated.

    Raises:
        CommandError: they can't be read, or the program has no such parameter.
    """
    given = {} if args is None else _json_arguments(args)
    named = named_texts(pairs)
    unknown = [name for name in (*given, *named) if name not in program.graph.shapes]
    if unknown:
        raise CommandError(f"{program.name} has no argument {unknown[0]!r}; {program.signature}")
    try:
        return {**given, **program.typed(named)}
    except ArgumentsError as error:
        raise CommandError(str(error)) from error


def template_options(pairs: Sequence[str]) -> dict[str, Any]:
    """What `--template-option` gives, by name: JSON, or else the text as it stands.

    Args:
        pairs: the `NAME=VALUE` of each.

    Raises:
        CommandError: one has no value, or is given twice.
    """
    return {name: _json_or_text(text) for name, text in sorted(named_texts(pairs, "--template-option").items())}


def _json_or_text(text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError:
        return text


def named_texts(pairs: Sequence[str], flag: str = "--arg") -> dict[str, str]:
    """The text of each `NAME=VALUE`, by its name.

    Args:
        pairs: as they were given.
        flag: what each was given with.

    Raises:
        CommandError: one has no value, or is given twice.
    """
    named: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise CommandError(f"{flag} {pair} has no value; write {flag} {pair}=VALUE")
        if name in named:
            raise CommandError(f"{flag} {name} is given twice")
        named[name] = value
    return named


def parse_json(text: str) -> Any:
    """Strict JSON.

    Raises:
        ValueError: it is none; says what and where.
    """
    try:
        return json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_refuse_doubles)
    except RecursionError as error:
        raise ValueError("it nests too deeply") from error


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _refuse_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {double!r} stands twice")
    return found


def _json_arguments(args: str) -> dict[str, Any]:
    text = args
    if args.startswith("@"):
        refuse_special(args[1:], "--args", "give a file, or the JSON itself")
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
