"""`promptlang repl`: the model loads behind the first prompt."""

import sys
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING

from promptlang.cli import garbage
from promptlang.cli.errors import CommandError, ExitCode
from promptlang.repl.conversation import Conversation
from promptlang.repl.known import Known, Refused
from promptlang.repl.printer import Printer
from promptlang.repl.shell import Shell, Went
from promptlang.session.settings import Settings
from promptlang.syntax.loader import LoadError

if TYPE_CHECKING:
    from promptlang.interpreter.loop import EngineLoop

_CODES = {
    Went.WELL: ExitCode.DONE,
    Went.REFUSED: ExitCode.WRONG,
    Went.FAILED: ExitCode.FAILED,
    Went.STOPPED: ExitCode.INTERRUPTED,
}


def repl(file: str | None, model: str, seed: int) -> ExitCode:
    """Run what is typed, or a script on stdin."""
    try:
        known = Known(file)
    except (LoadError, Refused) as error:
        raise CommandError(str(error)) from error
    loading: Future[EngineLoop] = Future()
    Thread(target=_load, args=(Settings(model), loading), daemon=True).start()

    def loaded() -> "EngineLoop":
        if not loading.done() and sys.stdout.isatty():
            print("waiting for the model ...", file=sys.stderr)
        return loading.result()

    printer = Printer(sys.stdout)
    is_watched = sys.stdin.isatty()
    conversation = Conversation(known, loaded, printer, seed)
    shell = Shell(conversation, printer, is_watched)
    try:
        if is_watched:
            from promptlang.repl.terminal import run_terminal

            run_terminal(shell)
            return ExitCode.DONE
        return _CODES[shell.run(sys.stdin.read())]
    finally:
        conversation.close()


def _load(settings: Settings, loading: "Future[EngineLoop]") -> None:
    try:
        from promptlang.session.opening import open_loop

        loop = open_loop(settings)[1]
        garbage.look_from_now_on()
        loading.set_result(loop)
    except BaseException as error:
        loading.set_exception(error)
