"""Which commands there are, and what they take.

argparse, because every start pays for the parser: it loads in 10 ms, typer in 120 ms. What a command needs is
imported when it is called, so that `check` never waits for the model's libraries.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import NoReturn

from promptlang.cli.errors import CommandError, ExitCode
from promptlang.cli.sizes import byte_count


def main() -> NoReturn:
    """The `promptlang` command."""
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: Sequence[str]) -> int:
    """Run one command.

    Args:
        arguments: what stands after `promptlang`.

    Returns:
        The exit code.
    """
    try:
        options = _parser().parse_args(arguments)
        code: int = options.command(options)
        sys.stdout.flush()
    except CommandError as error:
        print(f"promptlang: {error}", file=sys.stderr)
        return ExitCode.WRONG
    except KeyboardInterrupt:
        print("promptlang: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except BrokenPipeError:
        # Whoever read us has gone; Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.FAILED
    return code


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line as every other mistake is reported."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}; see {self.prog} --help")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="promptlang", description="Run prompt programs on a local model.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"promptlang {version('promptlang')}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_run(commands)
    _add_check(commands)
    _add_models(commands)
    return parser


_Commands = "argparse._SubParsersAction[argparse.ArgumentParser]"


def _add_run(commands: _Commands) -> None:
    run = commands.add_parser(
        "run",
        help="run a program",
        description="Run a program and print its result as JSON.",
        allow_abbrev=False,
    )
    run.add_argument("file", metavar="FILE", help="the program's .pl file")
    run.add_argument("--program", metavar="NAME", help="which program of the file (default: its only one, or `main`)")
    run.add_argument("--arg", metavar="NAME=VALUE", action="append", default=[], help="an argument; may be repeated")
    run.add_argument("--args", metavar="JSON|@FILE", help="arguments as one JSON object")
    run.add_argument(
        "--data", metavar="FILE|-", help="run once a row of a .jsonl or .csv file, or of JSON lines on stdin"
    )
    run.add_argument("--out", metavar="FILE", help="write the rows' results here")
    run.add_argument("--resume", action="store_true", help="go on with --out: skip the rows it already holds")
    run.add_argument("--model", default="embedded", help="`embedded` (default), a hub id, a folder or a .gguf file")
    run.add_argument("--seed", type=int, default=0, help="of all random numbers (default: 0)")
    run.add_argument("--json", action="store_true", help="print one JSON object: result, variables, numbers")
    run.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        help="show the conversation as it grows (default: on a terminal)",
    )
    run.add_argument("--no-cache", action="store_true", help="compute every prompt from its start, for comparison")
    run.add_argument("--kv-budget", metavar="SIZE", type=byte_count, help="memory for the KV cache, such as 512MiB")
    run.set_defaults(command=_run)


def _add_check(commands: _Commands) -> None:
    check = commands.add_parser(
        "check", help="check programs without a model", description="Report what is wrong.", allow_abbrev=False
    )
    check.add_argument("files", metavar="FILE", nargs="+", help="a .pl file")
    check.add_argument("--format", choices=["text", "json"], default="text", help="how to report (default: text)")
    check.set_defaults(command=_check)


def _add_models(commands: _Commands) -> None:
    models = commands.add_parser(
        "models", help="list the models at hand", description="List the models at hand.", allow_abbrev=False
    )
    models.set_defaults(command=_models)


def _run(options: argparse.Namespace) -> ExitCode:
    from promptlang.cli.run import RunOptions, run

    return run(RunOptions(**{name: value for name, value in vars(options).items() if name != "command"}))


def _check(options: argparse.Namespace) -> ExitCode:
    from promptlang.cli.check import check

    return check(options.files, options.format)


def _models(_: argparse.Namespace) -> ExitCode:
    from promptlang.cli.models import models

    return models()
