"""A statement or a command runs, and what comes of it is shown."""

import sys
from enum import Enum
from time import perf_counter
from typing import TextIO

from promptlang.diagnostics.rendering import render_all
from promptlang.repl.chunks import chunks
from promptlang.repl.commands import run_command
from promptlang.repl.conversation import Conversation
from promptlang.repl.known import Refused
from promptlang.repl.printer import Printer


class Went(Enum):
    """How a text went."""

    WELL = "well"
    REFUSED = "refused"
    FAILED = "failed"
    STOPPED = "stopped"


class Shell:
    """Runs what a person types, or a script.

    Args:
        conversation: runs the statements.
        printer: shows what they say.
        is_watched: whether a person watches: the numbers of each answer are shown, and errors among the answers.
    """

    def __init__(self, conversation: Conversation, printer: Printer, is_watched: bool) -> None:
        self.conversation = conversation
        self._printer = printer
        self._is_watched = is_watched

    def run(self, text: str) -> Went:
        """Run a text up to its first error."""
        for line, chunk in chunks(text):
            went = self._shown(chunk, line)
            if went is not Went.WELL:
                return went
        return Went.WELL

    @property
    def _errors(self) -> TextIO:
        return sys.stdout if self._is_watched else sys.stderr

    def _shown(self, text: str, line: int) -> Went:
        from promptlang.interpreter.run import RunError
        from promptlang.session.settings import OpeningError

        began, before = perf_counter(), self._counts()
        try:
            if text.startswith(":"):
                warnings = run_command(self.conversation, text, self._printer)
            else:
                warnings = self.conversation.run(text, "<repl>" if self._is_watched else "<stdin>", line)
            self._printer.end_statement()
            if warnings:
                print(render_all(warnings), end="", file=self._errors)
            if self._is_watched:
                self._say_numbers(before, perf_counter() - began)
            return Went.WELL
        except RunError as error:
            self._printer.end_statement()
            where = f" in {'.'.join(error.path)}" if error.path else ""
            print(f"error: {error.message} ({error.span}{where})", file=self._errors)
            return Went.FAILED
        except (Refused, OpeningError, OSError) as error:
            self._printer.end_statement()
            print(str(error).rstrip("\n"), file=self._errors)
            return Went.REFUSED
        except KeyboardInterrupt:
            self._printer.end_statement()
            self._printer.line("stopped" if text.startswith(":") else "stopped; the statement was taken back")
            return Went.STOPPED

    def _counts(self) -> tuple[int, int, int]:
        usage = self.conversation.usage
        return (0, 0, 0) if usage is None else (usage.requested_tokens, usage.computed_tokens, usage.generated_tokens)

    def _say_numbers(self, before: tuple[int, int, int], seconds: float) -> None:
        asked, computed, written = (now - then for now, then in zip(self._counts(), before, strict=True))
        if asked:
            cached = 100 * (asked - computed) // asked
            self._printer.dim(f"{computed} tokens computed, {cached}% cached, {written / seconds:.0f} tokens/s")
