"""Typed lines, from a terminal or a script on stdin, and what is shown for them."""

import os
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from time import perf_counter
from typing import TextIO

from promptlang.repl.chunks import chunks, is_complete
from promptlang.repl.conversation import Conversation
from promptlang.repl.known import Refused

HELP = """\
:prompt      the prompt so far          :vars        the variables
:undo [N]    take statements back       :redo [N]    bring them back
:save FILE   write a program that gives the same answers with the same seed
:help        this                       Ctrl-D       leave
Ctrl-C stops a statement and takes it back.
"""
WORDS = (
    "system: user: assistant: gen select score use pin fork keep adopt beam require log if elif else for while break "
    "continue pass record program fragment type const max_tokens= temperature= stop= top_p= top_k="
)


class Went(Enum):
    """How a statement or a command went."""

    WELL = "well"
    REFUSED = "refused"
    FAILED = "failed"
    STOPPED = "stopped"


class Printer:
    """Shows what a conversation's own prompt gets, and what is logged; branches are silent.

    Args:
        out: where to.
    """

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._is_line_open = False

    def turn(self, path: tuple[str, ...], role: str) -> None:
        pass

    def text(self, path: tuple[str, ...], text: str) -> None:
        pass

    def answer(self, path: tuple[str, ...], text: str) -> None:
        if not path and text:
            self._out.write(_visible(text))
            self._out.flush()
            self._is_line_open = True

    def ended(self, path: tuple[str, ...]) -> None:
        pass

    def pruned(self, path: tuple[str, ...]) -> None:
        pass

    def retried(self, path: tuple[str, ...], why: str) -> None:
        self.line(f"retry: {why}")

    def log(self, path: tuple[str, ...], text: str) -> None:
        self.line(f"log: {text}")

    def line(self, text: str) -> None:
        """A line of its own."""
        self.end_line()
        self._out.write(_visible(text) + "\n")

    def end_line(self) -> None:
        """End the line that an answer stands on."""
        if self._is_line_open:
            self._out.write("\n")
            self._is_line_open = False


def _visible(text: str) -> str:
    """Text that can't steer a terminal."""
    return "".join(char if char.isprintable() or char in "\n\t" else repr(char)[1:-1] for char in text)


def run_script(conversation: Conversation, text: str, printer: Printer) -> Went:
    """Run a script up to its first error, and tell how it went."""
    for line, chunk in chunks(text):
        went = _shown(conversation, chunk, printer, "<stdin>", line, sys.stderr)
        if went is not Went.WELL:
            return went
    return Went.WELL


def run_terminal(conversation: Conversation, printer: Printer) -> None:
    """Read and run until Ctrl-D."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import WordCompleter
    from prompt_toolkit.filters import Condition
    from prompt_toolkit.history import FileHistory
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter", filter=Condition(lambda: not is_complete(session.default_buffer.text)))
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        opens = buffer.document.current_line_before_cursor.rstrip().endswith(":")
        buffer.newline(copy_margin=True)
        if opens:
            buffer.insert_text("    ")

    @keys.add("enter", filter=Condition(lambda: is_complete(session.default_buffer.text)))
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    def words() -> list[str]:
        return [*WORDS.split(), *conversation.known.variables, *conversation.known.names.declared]

    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(_history_file())),
        completer=WordCompleter(words),
        complete_while_typing=False,
        multiline=True,
        key_bindings=keys,
        prompt_continuation=". ",
    )
    while True:
        try:
            typed = session.prompt("> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        for line, chunk in chunks(typed):
            if _shown(conversation, chunk, printer, "<repl>", line, sys.stdout) is not Went.WELL:
                break


def _history_file() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    folder = Path(base) / "promptlang"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "history"


def _shown(conversation: Conversation, text: str, printer: Printer, name: str, line: int, errors: TextIO) -> Went:
    """Run a chunk or a command, and show what comes of it."""
    from promptlang.diagnostics.rendering import render_all
    from promptlang.interpreter.run import RunError
    from promptlang.session.settings import OpeningError

    try:
        if text.startswith(":"):
            _command(conversation, text[1:].split(), printer)
            return Went.WELL
        with_numbers = name == "<repl>"
        began, before = perf_counter(), _counts(conversation)
        warnings = conversation.run(text, name, line)
        printer.end_line()
        if warnings:
            print(render_all(warnings), end="", file=errors)
        if with_numbers:
            _say_numbers(_counts(conversation), before, perf_counter() - began)
        return Went.WELL
    except RunError as error:
        printer.end_line()
        where = f" in {'.'.join(error.path)}" if error.path else ""
        print(f"error: {error.message} ({error.span}{where})", file=errors)
        return Went.FAILED
    except (Refused, OpeningError, OSError) as error:
        printer.end_line()
        print(str(error).rstrip("\n"), file=errors)
        return Went.REFUSED
    except KeyboardInterrupt:
        printer.line("stopped; the statement was taken back")
        return Went.STOPPED


def _counts(conversation: Conversation) -> tuple[int, int, int]:
    usage = conversation.usage
    return (0, 0, 0) if usage is None else (usage.requested_tokens, usage.computed_tokens, usage.generated_tokens)


def _say_numbers(after: tuple[int, int, int], before: tuple[int, int, int], seconds: float) -> None:
    asked, computed, written = (now - then for now, then in zip(after, before, strict=True))
    if asked:
        cached = 100 * (asked - computed) // asked
        print(f"\033[2m{computed} tokens computed, {cached}% cached, {written / seconds:.0f} tokens/s\033[0m")


def _command(conversation: Conversation, words: list[str], printer: Printer) -> None:
    commands: dict[str, Callable[[list[str]], None]] = {
        "help": lambda _: printer.line(HELP.rstrip()),
        "vars": lambda _: _show_variables(conversation, printer),
        "prompt": lambda _: _show_prompt(conversation, printer),
        "undo": lambda rest: printer.line(f"{conversation.undo(_number(rest))} taken back"),
        "redo": lambda rest: printer.line(f"{conversation.redo(_number(rest))} brought back"),
        "save": lambda rest: _save(conversation, rest),
    }
    name, *rest = words or [""]
    if name not in commands:
        raise Refused(f"error: there is no command :{name}; see :help")
    commands[name](rest)


def _show_variables(conversation: Conversation, printer: Printer) -> None:
    from promptlang.values.values import render_text

    for name, value in conversation.variables.items():
        shown = render_text(value) if isinstance(value, bool | int | float | str | list | dict | None) else value
        printer.line(f"{name} = {shown}")


def _show_prompt(conversation: Conversation, printer: Printer) -> None:
    for role, text in conversation.messages:
        printer.line(f"{role}: {text}" if role else text)


def _number(rest: list[str]) -> int:
    if rest and not rest[0].isdecimal():
        raise Refused(f"error: {rest[0]} is no number of statements")
    return int(rest[0]) if rest else 1


def _save(conversation: Conversation, rest: list[str]) -> None:
    if len(rest) != 1:
        raise Refused("error: say where to: `:save FILE.pl`")
    Path(rest[0]).write_text(conversation.program, encoding="utf-8")
