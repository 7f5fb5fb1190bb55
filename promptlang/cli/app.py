"""Which commands there are, and what they take.

argparse, because every start pays for the parser: it loads in 10 ms, typer in 120 ms. What a command needs is
imported when it is called, so that `check` never waits for the model's libraries.
"""

import argparse
import errno
import os
import sys
from collections.abc import Sequence
from dataclasses import fields
from io import TextIOWrapper
from time import perf_counter, process_time
from typing import Any, NoReturn, TypeAlias

from promptlang import __version__
from promptlang.cli import garbage
from promptlang.cli.ending import end_at_once
from promptlang.cli.errors import CommandError, ExitCode
from promptlang.cli.sizes import byte_count
from promptlang.runtime.openmp import spin_briefly

_STARTED = perf_counter() - process_time()
"""When this process began, where it is a command's own: up to here it has hardly waited for anything."""


def main() -> NoReturn:
    """The `promptlang` command."""
    garbage.put_off()
    spin_briefly()
    _open_closed()
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")  # JSON is, whatever the system's own encoding
    options = argparse.Namespace(started=_STARTED, tools=None)
    code = execute(sys.argv[1:], options)
    if options.tools is None:
        end_at_once(code)
    sys.exit(code)  # functions of the user's may have files open


def _open_closed() -> None:
    """Where whoever called us closed stdout or stderr, what goes there is dropped. (Python prints what is for a closed
    stderr on stdout.)"""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - as long as we run
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


def execute(arguments: Sequence[str], options: argparse.Namespace | None = None) -> int:
    """Run one command.

    Args:
        arguments: what stands after `promptlang`.
        options: takes what they say; `started` is when the command began, on the clock of `perf_counter`.

    Returns:
        The exit code.
    """
    options = options or argparse.Namespace(started=perf_counter())
    try:
        _parser().parse_args(arguments, options)
        code: int = options.command(options)
        sys.stdout.flush()
    except CommandError as error:
        print(f"promptlang: {error}", file=sys.stderr)
        return error.code
    except KeyboardInterrupt:
        print("promptlang: interrupted", file=sys.stderr)
        return ExitCode.INTERRUPTED
    except OSError as error:
        _give_up_stdout()
        if not _is_reader_gone(error):
            says = f"stdout can't be written: {error.strerror}" if error.filename is None else error
            print(f"promptlang: {says}", file=sys.stderr)
        return ExitCode.FAILED
    return code


def _give_up_stdout() -> None:
    """Where stdout takes no more, keep Python from complaining once more when it flushes at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _is_reader_gone(error: OSError) -> bool:
    """Whether whoever read our stdout has gone; Windows calls that a wrong argument."""
    return isinstance(error, BrokenPipeError) or (sys.platform == "win32" and error.errno == errno.EINVAL)


class _Parser(argparse.ArgumentParser):
    """Reports a wrong command line as every other mistake is reported."""

    def error(self, message: str) -> NoReturn:
        raise CommandError(f"{message}; see {self.prog} --help")

    def _print_message(self, message: str, file: Any = None) -> None:
        """Write what was asked for. argparse would pass over a stdout that takes no more."""
        print(message, end="", file=file, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="promptlang", description="Run prompt programs on a local model.", allow_abbrev=False)
    parser.add_argument("--version", action="version", version=f"promptlang {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_run(commands)
    _add_repl(commands)
    _add_check(commands)
    _add_explain(commands)
    _add_fmt(commands)
    _add_graph(commands)
    _add_stubs(commands)
    _add_models(commands)
    return parser


_Commands: TypeAlias = "argparse._SubParsersAction[_Parser]"


def _add_run(commands: "_Commands") -> None:
    run = commands.add_parser(
        "run",
        help="run a program",
        description="Run a program and print its result as JSON.",
        allow_abbrev=False,
        add_help=False,
        usage="%(prog)s FILE [OPTION ...]\n       %(prog)s FILE --help",
    )
    run.add_argument("file", metavar="FILE", nargs="?", help="the program's .pl file")
    run.add_argument("-h", "--help", action="store_true", help="show this; after FILE, what the program takes")
    run.add_argument("--program", metavar="NAME", help="which program of the file (default: its only one, or `main`)")
    run.add_argument("--arg", metavar="NAME=VALUE", action="append", default=[], help="an argument; may be repeated")
    run.add_argument("--args", metavar="JSON|@FILE", help="arguments as one JSON object")
    run.add_argument(
        "--data", metavar="FILE|-", help="run once a row of a .jsonl or .csv file, or of JSON lines on stdin"
    )
    run.add_argument("--out", metavar="FILE", help="write the rows' results here")
    run.add_argument("--resume", action="store_true", help="go on with --out: skip the rows it already holds")
    run.add_argument("--model", default="embedded", help="`embedded` (default), a hub id, a folder or a .gguf file")
    run.add_argument(
        "--device", default="auto", help="where the model runs: cpu, cuda, cuda:1 ...; auto (default) prefers cuda"
    )
    run.add_argument(
        "--dtype",
        choices=["float32", "bfloat16", "int4"],
        help="how weights are kept: exact (float32, default on a CPU), smaller and fast for many sequences (bfloat16, "
        "default elsewhere), or fastest on a CPU (int4: in four bits for few sequences, in bfloat16 for many)",
    )
    run.add_argument(
        "--deterministic",
        action="store_true",
        help="never choose the layout of weights by how many sequences run, and never speculate: slower, more alike in "
        "any company",
    )
    run.add_argument("--seed", type=int, default=0, help="of all random numbers (default: 0)")
    run.add_argument("--json", action="store_true", help="print one JSON object: result, variables, numbers")
    run.add_argument(
        "--stream",
        action=argparse.BooleanOptionalAction,
        help="show the conversation as it grows (default: on a terminal)",
    )
    run.add_argument(
        "--show-prompt",
        action="store_true",
        help="at each model call, show on stderr the exact text that the model is asked about",
    )
    run.add_argument(
        "--template-option",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="what the model's chat template may ask for, such as enable_thinking=false: JSON, or else text; may be "
        "repeated",
    )
    run.add_argument("--no-cache", action="store_true", help="compute every prompt from its start, for comparison")
    run.add_argument(
        "--no-speculation",
        action="store_true",
        help="compute no token before it is written, for comparison: the same result, in more passes",
    )
    run.add_argument("--kv-budget", metavar="SIZE", type=byte_count, help="memory for the KV cache, such as 512MiB")
    run.add_argument("--tools", metavar="FILE.py", help="a Python file with the functions of the program's tools")
    _add_passes(run)
    run.set_defaults(command=_run, show_help=run.print_help)


def _add_repl(commands: "_Commands") -> None:
    repl = commands.add_parser(
        "repl", help="run statements as they are typed", description="Run statements as typed.", allow_abbrev=False
    )
    repl.add_argument("file", metavar="FILE", nargs="?", help="a .pl file whose declarations are known")
    repl.add_argument("--model", default="embedded", help="`embedded` (default), a hub id, a folder or a .gguf file")
    repl.add_argument("--seed", type=int, default=0, help="of all random numbers (default: 0)")
    repl.set_defaults(command=_repl)


def _add_check(commands: "_Commands") -> None:
    check = commands.add_parser(
        "check", help="check programs without a model", description="Report what is wrong.", allow_abbrev=False
    )
    check.add_argument("files", metavar="FILE", nargs="+", help="a .pl file")
    check.add_argument("--format", choices=["text", "json"], default="text", help="how to report (default: text)")
    check.add_argument("--cost", action="store_true", help="say what the programs will cost")
    check.add_argument("--rows", metavar="N", type=_row_count, default=1, help="with --cost: for N runs (default: 1)")
    check.add_argument(
        "--arg", metavar="NAME=VALUE", action="append", default=[], help="with --cost: an argument; may be repeated"
    )
    check.set_defaults(command=_check)


def _row_count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of rows; give 1 or more")
    return int(text)


def _add_fmt(commands: "_Commands") -> None:
    fmt = commands.add_parser(
        "fmt",
        help="lay programs out",
        description="Lay programs out, in place. What they mean stays the same.",
        allow_abbrev=False,
    )
    fmt.add_argument(
        "files", metavar="FILE", nargs="+", help="a .pl file, a folder of them, or `-`: from stdin to stdout"
    )
    fmt.add_argument(
        "--check", action="store_true", help="write nothing; show what would change, and exit with 1 if anything would"
    )
    fmt.set_defaults(command=_fmt)


def _add_graph(commands: "_Commands") -> None:
    graph = commands.add_parser(
        "graph",
        help="draw what a program does",
        description="Draw what runs after what, what forks, what is shared, and what never runs.",
        allow_abbrev=False,
    )
    graph.add_argument("file", metavar="FILE", help="the program's .pl file")
    graph.add_argument(
        "-o", dest="out", metavar="FILE", help="a .svg, .dot or .json file to write (default: print lines)"
    )
    graph.add_argument("--program", metavar="NAME", help="only this program of the file")
    _add_passes(graph)
    graph.set_defaults(command=_graph)


def _add_stubs(commands: "_Commands") -> None:
    stubs = commands.add_parser(
        "stubs",
        help="write types of programs for Python's type checkers",
        description="Write what Python's type checkers need to know: `triage_pl.pyi` beside `triage.pl`.",
        allow_abbrev=False,
    )
    stubs.add_argument("files", metavar="FILE", nargs="+", help="a .pl file")
    stubs.set_defaults(command=_stubs)


def _add_passes(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--passes", metavar="all|none|NAME,...", default="all", help="which optimisations to make (default: all)"
    )


def _add_explain(commands: "_Commands") -> None:
    explain = commands.add_parser(
        "explain", help="print the page of a diagnostic's code", description="Print a code's page.", allow_abbrev=False
    )
    explain.add_argument("code", metavar="CODE", help="such as PL203")
    explain.set_defaults(command=_explain)


def _add_models(commands: "_Commands") -> None:
    models = commands.add_parser(
        "models", help="list the models at hand", description="List the models at hand.", allow_abbrev=False
    )
    models.set_defaults(command=_models)


def _run(options: argparse.Namespace) -> ExitCode:
    if options.help and options.file is None:
        options.show_help()
        return ExitCode.DONE
    if options.file is None:
        raise CommandError("run needs the program's FILE; see promptlang run --help")
    if options.help:
        from promptlang.cli.program_help import program_help

        return program_help(options.file, options.program)
    from promptlang.cli.run import RunOptions, run

    names = {item.name for item in fields(RunOptions)}
    return run(RunOptions(**{name: value for name, value in vars(options).items() if name in names}))


def _repl(options: argparse.Namespace) -> ExitCode:
    from promptlang.cli.repl import repl

    return repl(options.file, options.model, options.seed)


def _check(options: argparse.Namespace) -> ExitCode:
    from promptlang.cli.check import check, check_cost

    if options.cost:
        return check_cost(options.files, options.format, options.rows, options.arg)
    return check(options.files, options.format)


def _fmt(options: argparse.Namespace) -> ExitCode:
    from promptlang.cli.fmt import fmt

    return fmt(options.files, writes=not options.check)


def _graph(options: argparse.Namespace) -> ExitCode:
    from promptlang.cli.graph import graph

    return graph(options.file, options.out, options.program, options.passes)


def _stubs(options: argparse.Namespace) -> ExitCode:
    from promptlang.cli.check import checked, show
    from promptlang.cli.stubs import write_stubs

    files = [checked(file) for file in options.files]
    wrong = [file for file in files if not file.is_ok]
    for file in wrong:
        show(file.diagnostics)
    return ExitCode.WRONG if wrong else write_stubs(files)


def _explain(options: argparse.Namespace) -> ExitCode:
    from promptlang.diagnostics.rendering import codes, explain

    try:
        print(explain(options.code), end="")
    except KeyError:
        raise CommandError(f"there is no code {options.code}; they run from {codes()[0]} to {codes()[-1]}") from None
    return ExitCode.DONE


def _models(_: argparse.Namespace) -> ExitCode:
    from promptlang.cli.models import models

    return models()
