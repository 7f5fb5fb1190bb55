"""`promptlang graph`: what runs after what, what forks, what is shared, what never runs."""

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from promptlang.cli.check import checked, show
from promptlang.cli.errors import CommandError, ExitCode
from promptlang.cli.passes import passes_named
from promptlang.compiler.passes.optimise import Optimised
from promptlang.drawing.data import document
from promptlang.drawing.dot import GraphvizMissingError, dot, svg
from promptlang.drawing.picture import Picture, picture
from promptlang.drawing.tokens import token_counter
from promptlang.drawing.tree import tree
from promptlang.session.program_file import ProgramFile


def graph(file: str, out: str | None, program: str | None, passes: str) -> ExitCode:
    """Draw a file's programs.

    Args:
        file: the program's .pl file.
        out: a .svg, .dot or .json file to write; None prints a tree of lines.
        program: only this one; None for all.
        passes: which passes run first: `all`, `none`, or names.
    """
    write = _tree if out is None else _writer(out)
    found = checked(file)
    if not found.is_ok:
        show(found.diagnostics)
        return ExitCode.WRONG
    text = write(_pictures(found.optimised(passes_named(passes)), _names(found, program)))
    if out is None:
        sys.stdout.write(text)
        return ExitCode.DONE
    try:
        Path(out).write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"-o: {out} can't be written: {error.strerror}") from error
    return ExitCode.DONE


def _names(file: ProgramFile, program: str | None) -> Sequence[str]:
    if program is None:
        return list(file.graphs)
    if program not in file.names:
        raise CommandError(f"there is no program {program!r}; there are {', '.join(file.names) or 'none'}")
    return [program]


def _pictures(result: Optimised, names: Sequence[str]) -> list[Picture]:
    count = token_counter()
    return [picture(result.graphs[name], result.findings[name], count) for name in names]


def _writer(out: str) -> Callable[[Sequence[Picture]], str]:
    writers = {".svg": _svg, ".dot": dot, ".json": _json}
    suffix = Path(out).suffix
    if suffix not in writers:
        raise CommandError(f"-o: {out} names no form; end it in .svg, .dot or .json")
    return writers[suffix]


def _svg(pictures: Sequence[Picture]) -> str:
    try:
        return svg(pictures)
    except GraphvizMissingError as error:
        raise CommandError(str(error)) from error


def _json(pictures: Sequence[Picture]) -> str:
    return json.dumps(document(pictures), ensure_ascii=False, indent=1) + "\n"


def _tree(pictures: Sequence[Picture]) -> str:
    return "\n".join(map(tree, pictures))
