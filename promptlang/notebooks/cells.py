"""Cells of a notebook: `%load_ext promptlang`, then `%%promptlang`; and `run`, the same as a function, for notebooks
and editors that know no magic cells."""

import argparse
import re
import shlex
import sys
from collections.abc import Callable, Mapping
from textwrap import indent
from time import monotonic
from typing import Any

from promptlang.api.any_program import Outcome
from promptlang.api.data import to_data
from promptlang.api.errors import ProgramError, RunError
from promptlang.api.events import Event
from promptlang.api.files import FileProgram, compile
from promptlang.api.html import conversation_html

SECONDS_BETWEEN = 0.1
"""Between two updates of what is shown."""

_PROGRAM = re.compile(r"^(?:program|record|type|const|fragment)\b", re.MULTILINE)
_NAME = re.compile(r"[^\W\d]\w*")

Show = Callable[[str], None]
"""Shows HTML in place of what it showed before."""


def run(text: str, *, seed: int | None = None, show: Show | None = None, **variables: Any) -> Outcome[Any]:
    """Run a program, or statements; a notebook shows what comes back as a conversation.

    Args:
        text: a program's source, or the statements of one.
        seed: of its random numbers.
        show: is called with the conversation as it grows, at most ten times a second.
        variables: arguments by name; of a program's parameters those that are there are taken, of statements those that
            are named in them.

    Raises:
        ProgramError: the text has errors; `str()` shows them, each with its line.
        RunError: the run failed.
    """
    program, arguments = _program(text, variables)
    if seed is not None:
        program = program.using(seed=seed)
    events: list[Event] = []
    shown = 0.0
    with program.stream(**arguments) as under_way:
        for event in under_way:
            events.append(event)
            if show is not None and monotonic() - shown >= SECONDS_BETWEEN:
                show(conversation_html(events))
                shown = monotonic()
        outcome = under_way.outcome
    if show is not None:
        show(conversation_html(events))
    return Outcome(outcome.result, outcome.variables, outcome.messages, outcome.usage, tuple(events))


def _program(text: str, variables: Mapping[str, Any]) -> tuple[FileProgram, dict[str, Any]]:
    """The program that a text is or makes, and the arguments it takes of some variables."""
    if _PROGRAM.search(text):
        program = compile(text)
        return program, {name: value for name, value in variables.items() if name in program.parameters}
    words = set(_NAME.findall(text))
    arguments = {name: value for name, value in variables.items() if name in words and _is_data(value)}
    header = f"program cell({', '.join(f'{name}: json' for name in arguments)}):"
    return compile(f"{header}\n{indent(text.strip(chr(10)), '    ')}\n"), arguments


def _is_data(value: Any) -> bool:
    """Whether a variable of a notebook can be an argument."""
    try:
        to_data(value)
    except TypeError:
        return False
    return True


# IPython -------------------------------------------------------------------------------------------------


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext promptlang`: cells that begin with `%%promptlang` are programs."""

    def cell(line: str, text: str) -> Any:
        return _run_cell(shell, line, text)

    shell.register_magic_function(cell, "cell", "promptlang")


def _run_cell(shell: Any, line: str, text: str) -> Any:
    """`%%promptlang [--seed N] [-o NAME]`: the variables of the notebook go in by name, those that the program binds
    come out, and its result is the cell's, and NAME's."""
    options = _options(line)
    if options is None:
        return None
    try:
        outcome = run(text, seed=options.seed, show=_shower(), **_variables(shell, options.output))
    except (ProgramError, RunError) as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return None
    shell.user_ns.update(outcome.variables)
    if options.output is not None:
        shell.user_ns[options.output] = outcome.result
    return outcome.result


def _options(line: str) -> argparse.Namespace | None:
    parser = argparse.ArgumentParser(prog="%%promptlang", description="Run the cell as a program.")
    parser.add_argument("--seed", type=int, help="of its random numbers")
    parser.add_argument("-o", dest="output", metavar="NAME", help="a variable that takes the result")
    try:
        return parser.parse_args(shlex.split(line))
    except SystemExit:  # argparse has said why
        return None


def _variables(shell: Any, output: str | None) -> dict[str, Any]:
    """The notebook's own variables; `run` takes those that the cell names."""
    hidden = {"show", "seed", "text", output}
    return {name: value for name, value in shell.user_ns.items() if not name.startswith("_") and name not in hidden}


def _shower() -> Show:
    """Shows HTML in the cell that is running, in place of what it showed before."""
    from IPython.display import HTML, display

    handle = display(HTML(""), display_id=True)  # type: ignore[no-untyped-call]

    def show(html: str) -> None:
        handle.update(HTML(html))  # type: ignore[no-untyped-call]

    return show
