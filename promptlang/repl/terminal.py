"""Lines as they are typed, with history, colours and completion."""

import os
from collections.abc import Callable, Iterable
from functools import lru_cache
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.formatted_text.utils import split_lines
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import Lexer

from promptlang.repl.chunks import is_complete
from promptlang.repl.commands import COMMANDS
from promptlang.repl.known import Known
from promptlang.repl.shell import Shell
from promptlang.repl.words import completions, pieces

_STYLES = {
    "keyword": "ansiblue",
    "role": "ansimagenta",
    "string": "ansigreen",
    "number": "ansicyan",
    "comment": "italic",
}


class _Colours(Lexer):
    """Colours a text once for all its lines."""

    def lex_document(self, document: Document) -> Callable[[int], StyleAndTextTuples]:
        lines = _coloured(document.text)
        return lambda number: lines[number] if number < len(lines) else []


@lru_cache(maxsize=4)
def _coloured(text: str) -> list[StyleAndTextTuples]:
    return list(split_lines([(_STYLES.get(kind, ""), piece) for kind, piece in pieces(text)]))


class _Words(Completer):
    """Completes commands, and words by what is known."""

    def __init__(self, known: Known) -> None:
        self._known = known

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        before = document.text_before_cursor
        if before.startswith(":"):
            names = [f":{name}" for name in COMMANDS]
            length, words = len(before), [name for name in names if name.startswith(before)]
        else:
            length, words = completions(self._known, before)
        return [Completion(word, -length) for word in words]


def run_terminal(shell: Shell) -> None:
    """Read and run until Ctrl-D."""
    session: PromptSession[str] = PromptSession(
        history=FileHistory(str(_history_file())),
        lexer=_Colours(),
        completer=_Words(shell.conversation.known),
        complete_while_typing=False,
        multiline=True,
        key_bindings=_keys(),
        prompt_continuation=". ",
    )
    while True:
        try:
            typed = session.prompt("> ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        shell.run(typed)


def _keys() -> KeyBindings:
    """Enter runs what is whole, and begins a line in what is not."""
    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching)
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.text.startswith(":") or is_complete(buffer.text):
            buffer.validate_and_handle()
            return
        opens = buffer.document.current_line_before_cursor.rstrip().endswith(":")
        buffer.newline(copy_margin=True)
        if opens:
            buffer.insert_text("    ")

    return keys


def _history_file() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    folder = Path(base) / "promptlang"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "history"
