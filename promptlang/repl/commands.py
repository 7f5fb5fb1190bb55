"""What begins with a colon."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from promptlang.diagnostics.rendering import Diagnostic, did_you_mean
from promptlang.repl.chunks import chunks
from promptlang.repl.conversation import Conversation
from promptlang.repl.known import Refused
from promptlang.repl.printer import Printer
from promptlang.repl.rewriting import beginning_with, with_more_tokens

MOST_ALTERNATIVES = 8

MOST_SHOWN = 4
"""Tokens that a type allowed, and that it refused."""

Run: TypeAlias = Callable[[Conversation, str, Printer], list[Diagnostic] | None]
"""Runs a command, given what stands behind its name; gives the warnings of the statements that it ran."""


@dataclass(frozen=True)
class Command:
    """A command.

    Attributes:
        usage: what may stand behind its name.
        help: what it does.
        run: does it.
    """

    usage: str
    help: str
    run: Run


def run_command(conversation: Conversation, text: str, printer: Printer) -> list[Diagnostic]:
    """Run a command; gives the warnings.

    Raises:
        Refused: there is none of this name, or what stands behind it is wrong.
        RunError, KeyboardInterrupt: as `Conversation.run`.
        OSError: a file can't be read or written.
    """
    name, _, rest = text[1:].strip().partition(" ")
    if name not in COMMANDS:
        near = did_you_mean(name, COMMANDS)
        raise Refused(f"error: there is no command :{name}; {near or 'see :help'}")
    rest = rest.strip()
    if rest and not COMMANDS[name].usage:
        raise Refused(f"error: nothing stands behind :{name}")
    return COMMANDS[name].run(conversation, rest, printer) or []


# What is there -------------------------------------------------------------------------------------------


def _help(conversation: Conversation, rest: str, printer: Printer) -> None:
    for name, command in COMMANDS.items():
        printer.line(f"{f':{name} {command.usage}':22}{command.help}")
    printer.line("Ctrl-C stops a statement and takes it back; Ctrl-D leaves; Ctrl-R searches what was typed.")


def _prompt(conversation: Conversation, rest: str, printer: Printer) -> None:
    if not rest:
        for role, text in conversation.messages:
            printer.line(f"{role}: {text}" if role else text)
        return
    if rest != "tokens":
        raise Refused("error: say `:prompt` or `:prompt tokens`")
    from promptlang.repl.engine_views import engine_of, tokens_of

    tokens = tokens_of(engine_of(conversation.backend), conversation.prompt)
    for token in tokens:
        printer.line(f"{'=' if token.is_cached else ' '} {token.id:6}  {token.text}")
    printer.line(f"{len(tokens)} tokens, {sum(token.is_cached for token in tokens)} of them cached (=)")


def _variables(conversation: Conversation, rest: str, printer: Printer) -> None:
    from promptlang.values.values import render_text

    for name, value in conversation.variables.items():
        shown = render_text(value) if isinstance(value, bool | int | float | str | list | dict | None) else value
        printer.line(f"{name} = {shown}")


def _tree(conversation: Conversation, rest: str, printer: Printer) -> None:
    from promptlang.repl.engine_views import engine_of, tree_of

    printer.line(tree_of(engine_of(conversation.backend), shutil.get_terminal_size().columns))


def _cost(conversation: Conversation, rest: str, printer: Printer) -> None:
    usage = conversation.usage
    for name, number in ({} if usage is None else usage.as_dict()).items():
        if number:
            printer.line(f"{name:20}{number:10}")


def _model(conversation: Conversation, rest: str, printer: Printer) -> None:
    from promptlang.repl.engine_views import engine_of, model_of

    printer.line(model_of(engine_of(conversation.backend)))


def _branches(conversation: Conversation, rest: str, printer: Printer) -> None:
    for name, text in _branch_texts(conversation):
        room = max(20, shutil.get_terminal_size().columns - len(name) - 2)
        shown = " ".join(text.split())
        printer.line(f"{name}  {shown if len(shown) <= room else shown[: room - 1] + '…'}")


def _branch_texts(conversation: Conversation) -> Iterator[tuple[str, str]]:
    """The branches that variables hold, as an expression says them, and what was said in each."""
    from promptlang.interpreter.branches import BranchValue
    from promptlang.values.values import RecordValue

    for name, value in conversation.variables.items():
        inner: dict[str, object] = {}
        if isinstance(value, list):
            inner = {f"{name}[{at}]": item for at, item in enumerate(value)}
        elif isinstance(value, RecordValue):
            inner = {f"{name}.{part}": item for part, item in value.fields.items()}
        for path, item in inner.items():
            if isinstance(item, BranchValue):
                yield path, str(item.part("text"))


# What goes on --------------------------------------------------------------------------------------------


def _undo(conversation: Conversation, rest: str, printer: Printer) -> None:
    printer.line(f"{conversation.undo(_number(rest, 1))} taken back")


def _redo(conversation: Conversation, rest: str, printer: Printer) -> None:
    printer.line(f"{conversation.redo(_number(rest, 1))} brought back")


def _switch(conversation: Conversation, rest: str, printer: Printer) -> list[Diagnostic]:
    if not rest:
        raise Refused("error: say which branch, as in `:switch drafts[1]`; :branches shows them")
    return conversation.run(f"adopt {rest}\n")


def _again(conversation: Conversation, rest: str, printer: Printer) -> list[Diagnostic]:
    return conversation.anew(seed=_number(rest, conversation.last_seed + 1))


def _continue(conversation: Conversation, rest: str, printer: Printer) -> list[Diagnostic]:
    return conversation.anew(with_more_tokens(conversation.last))


def _edit(conversation: Conversation, rest: str, printer: Printer) -> list[Diagnostic]:
    edited = _edited(conversation.last)
    return [] if edited.strip() in ("", conversation.last.strip()) else conversation.anew(edited)


def _edited(text: str) -> str:
    """A text as a person changed it."""
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "statement.pl"
        file.write_text(text, encoding="utf-8")
        if subprocess.run([*editor, str(file)], check=False).returncode:
            raise Refused(f"error: {editor[0]} failed; the statement stands as it was")
        return _read(file)


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise Refused(f"error: {file} is no UTF-8: {error}") from error


def _alternatives(conversation: Conversation, rest: str, printer: Printer) -> list[Diagnostic]:
    from promptlang.repl.engine_views import alternatives

    began = conversation.last_began
    heals = bool(conversation.value_of(began.node.options["heal"])) if "heal" in began.node.options else True
    found = alternatives(conversation.backend, began.prompt, began.node.shape, heals, MOST_ALTERNATIVES)
    if rest:
        number = _number(rest, 1)
        if not 1 <= number <= len(found):
            raise Refused(f"error: there are the alternatives 1 to {len(found)}")
        begins = found[number - 1].text
        statement = beginning_with(conversation.last, begins)
        printer.answer((), begins)
        return conversation.anew(statement)
    for number, one in enumerate(found, 1):
        printer.line(f"{number:3}  {one.probability:7.2%}  {one.text!r}")
    return []


def _why(conversation: Conversation, rest: str, printer: Printer) -> None:
    from promptlang.repl.engine_views import place_of

    began = conversation.last_began
    if began.node.shape is None:
        raise Refused("error: the last answer is free text, to which no type allowed some tokens only")
    step = _number(rest, 1) if rest else None
    after = conversation.prompt.fork()
    place = place_of(conversation.backend, began.prompt, after, began.node.shape, step, MOST_SHOWN)
    after.release()
    end = ", or the answer's end" if place.may_end else ""
    printer.line(f"token {place.step} of {place.steps}: {place.text!r}; the type allowed {place.allowed_count}{end}")
    for title, found in (("allowed", place.allowed), ("refused", place.refused)):
        for one in found:
            printer.line(f"  {title}  {one.probability:7.2%}  {one.text!r}")


def _seed(conversation: Conversation, rest: str, printer: Printer) -> None:
    conversation.seed = _number(rest, conversation.seed)
    printer.line(f"seed {conversation.seed}")


def _load(conversation: Conversation, rest: str, printer: Printer) -> list[Diagnostic]:
    if not rest:
        raise Refused("error: say what: `:load FILE.pl`")
    return [warning for line, chunk in chunks(_read(Path(rest))) for warning in conversation.run(chunk, rest, line)]


def _save(conversation: Conversation, rest: str, printer: Printer) -> None:
    if not rest:
        raise Refused("error: say where to: `:save FILE.pl`")
    Path(rest).write_text(conversation.program, encoding="utf-8")
    first, *others = conversation.seeds
    if others:
        seeds = ", ".join(map(str, conversation.seeds))
        printer.line(f"the statements ran with several seeds ({seeds}): with no one seed the program answers the same")
    elif first:
        printer.line(f"it gives the same answers with --seed {first}")


def _number(rest: str, default: int) -> int:
    if rest and not rest.isdecimal():
        raise Refused(f"error: {rest} is no whole number")
    return int(rest) if rest else default


COMMANDS: Mapping[str, Command] = {
    "prompt": Command("[tokens]", "the prompt so far; its tokens, and which are cached", _prompt),
    "vars": Command("", "the variables", _variables),
    "branches": Command("", "the branches that variables hold", _branches),
    "switch": Command("BRANCH", "go on in a branch, as `adopt` does: `:switch drafts[1]`", _switch),
    "undo": Command("[N]", "take statements back", _undo),
    "redo": Command("[N]", "bring them back", _redo),
    "again": Command("[SEED]", "the last statement anew, with other random numbers", _again),
    "continue": Command("", "the last answer anew, with room for twice as many tokens", _continue),
    "edit": Command("", "the last statement anew, as you change it in $EDITOR", _edit),
    "alternatives": Command("[N]", "how the last answer might have begun; begin with the Nth", _alternatives),
    "why": Command("[N]", "what the type allowed at the last token of the last answer, or at its Nth", _why),
    "seed": Command("[N]", "the seed of what runs next", _seed),
    "load": Command("FILE", "run the statements of a file", _load),
    "save": Command("FILE", "write what stands as a program that gives the same answers", _save),
    "tree": Command("", "the cache: shared parts (=), and what holds them", _tree),
    "cost": Command("", "the numbers so far", _cost),
    "model": Command("", "the model, and its room", _model),
    "help": Command("", "this", _help),
}
"""By name."""
