"""One run of a program, and what is shown of it."""

import sys

from promptlang.cli.errors import ExitCode
from promptlang.cli.output import Output
from promptlang.cli.report import Fault, Heading, line_of, pretty
from promptlang.cli.stream import ConversationView, log_view
from promptlang.diagnostics.rendering import excerpt
from promptlang.interpreter.run import RunError
from promptlang.session.runner import Runner
from promptlang.session.session import Session
from promptlang.values.values import Value


def run_once(
    session: Session,
    runner: Runner,
    arguments: dict[str, Value],
    heading: Heading,
    output: Output,
    *,
    json: bool,
    streams: bool | None,
    shows_prompts: bool,
) -> ExitCode:
    """Run a program, show what was asked for, and end with the line of numbers.

    Args:
        session: open.
        runner: of the program.
        arguments: of the program.
        heading: of the report.
        output: where to.
        json: whether to print a report instead of the result.
        streams: whether to show the conversation; None does so on a terminal.
        shows_prompts: whether to show what the model is asked about, instead of the conversation.
    """
    if streams is None:
        streams = output.is_terminal and not json and not shows_prompts
    view = ConversationView(output.console) if streams else log_view(output.console, shows_prompts)
    started = runner.start(arguments, observer=view)
    started.usage.load_seconds = session.usage.load_seconds
    fault = None
    try:
        outcome = runner.wait(started)
    except RunError as error:
        fault = Fault.at(error.span, error.message, error.path)
        place = excerpt(error.span)
    finally:
        if isinstance(view, ConversationView):
            view.finish()
    if fault is not None:
        print(fault, *place, sep="\n", file=sys.stderr)
    if json:
        print(line_of(heading.report(fault or outcome, started.usage, session.weights)), file=output.stdout)
    elif fault is None:
        print(pretty(outcome.result), file=output.stdout)
    output.stdout.flush()
    output.close(started.usage)
    return ExitCode.DONE if fault is None else ExitCode.FAILED
