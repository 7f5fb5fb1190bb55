"""Lines as they are typed, with history and completion."""

import os
from pathlib import Path

from promptlang.repl.chunks import is_complete
from promptlang.repl.shell import Shell

WORDS = (
    "system: user: assistant: gen select score use pin fork keep adopt beam require log if elif else for while break "
    "continue pass record program fragment type const max_tokens= temperature= stop= top_p= top_k="
)


def run_terminal(shell: Shell) -> None:
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
        known = shell.conversation.known
        return [*WORDS.split(), *known.variables, *known.names.declared]

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
        shell.run(typed)


def _history_file() -> Path:
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    folder = Path(base) / "promptlang"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / "history"
