"""What a terminal shows while a program runs."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console
from rows_files import rows_file

from promptlang.cli.stream import ConversationView, LogView, log_view
from promptlang.interpreter.observer import PromptObserver
from promptlang.runtime.backend import PromptText
from promptlang.runtime.text.markup import Part


def console(width: int = 40) -> Console:
    return Console(file=io.StringIO(), width=width, highlight=False)


def shown(target: Console) -> str:
    assert isinstance(target.file, io.StringIO)
    return target.file.getvalue()


def test_turns_text_and_answers_come_as_they_are_written() -> None:
    target = console()
    view = ConversationView(target)
    view.turn((), "user")
    view.text((), "Why?")
    view.turn((), "assistant")
    view.answer((), "Be")
    assert shown(target) == "user\nWhy?\nassistant\nBe"
    view.answer((), "cause.")
    view.finish()
    assert shown(target) == "user\nWhy?\nassistant\nBecause.\n\n"


def test_a_branch_is_shown_in_one_piece_when_it_ends() -> None:
    target = console()
    view = ConversationView(target)
    view.text((), "Start")
    view.answer(("b[0]",), "left ")
    view.answer(("b[1]",), "right")
    view.answer(("b[0]",), "again")
    assert shown(target) == "Start"
    view.pruned(("b[1]",))
    view.ended(("b[0]",))
    assert shown(target) == "Start\n┌ b[1] (pruned)\n│ right\n┌ b[0]\n│ left again\n"


def test_branches_of_branches_stand_in_their_parents_block() -> None:
    target = console()
    view = ConversationView(target)
    view.text(("a[0]",), "outer")
    view.text(("a[0]", "b[0]"), "inner")
    view.ended(("a[0]", "b[0]"))
    view.text(("a[0]",), "after")
    view.ended(("a[0]",))
    assert shown(target) == "┌ a[0]\n│ outer\n│ ┌ b[0]\n│ │ inner\n│ after\n"


def test_what_is_withdrawn_is_said_to_be() -> None:
    target = console()
    view = ConversationView(target)
    view.answer((), "No")
    view.retried((), "`x > 3` is not met")
    view.answer((), "Yes")
    view.answer(("b[0]",), "No")
    view.retried(("b[0]",), "`x > 3` is not met")
    view.answer(("b[0]",), "Yes")
    view.ended(("b[0]",))
    withdrawn = "withdrawn: `x > 3` is not met, again"
    assert shown(target) == f"No\n{withdrawn}\nYes\n┌ b[0]\n│ No\n│ {withdrawn}\n│ Yes\n"


def test_what_a_failed_branch_said_is_shown_at_the_end() -> None:
    target = console()
    view = ConversationView(target)
    view.answer(("a[0]", "b[0]"), "half an ans")
    view.finish()
    assert "│ │ half an ans\n" in shown(target)


def test_blocks_fit_a_narrow_terminal() -> None:
    target = console(width=24)
    view = ConversationView(target)
    view.text(("a[0]",), "words " * 20)
    view.ended(("a[0]",))
    assert all(len(line) <= 24 for line in shown(target).splitlines())


def test_data_can_not_move_the_cursor() -> None:
    target = console()
    view = ConversationView(target)
    view.text((), "\x1b[2Jgone\r\a")
    assert "\x1b" not in shown(target)
    assert "gone" in shown(target)


def test_markup_in_text_is_text() -> None:
    target = console()
    view = ConversationView(target)
    view.text((), "[bold]x[/bold] :smile:")
    assert shown(target) == "[bold]x[/bold] :smile:"


def test_logs_are_shown_where_the_conversation_is_not() -> None:
    target = console()
    view = LogView(target)
    view.answer((), "unseen")
    view.log(("b[0]",), "seen")
    assert shown(target) == "log: b[0]: seen\n"


# Prompts -----------------------------------------------------------------------------------------------------

Command = Callable[..., tuple[int, str, str]]

CALLS = """
program main(word: str) -> str:
    user: "Say ${word}"
    fork 2 as ways:
        assistant: way = gen(max_tokens=1, temperature=1)
    return ways[0].way + ways[1].way
"""


def prompt_shown(prompt: PromptText, has_rows: bool = False) -> str:
    target = console()
    view = log_view(target, shows_prompts=True, has_rows=has_rows)
    assert isinstance(view, PromptObserver)
    view.prompt(3, ("b[0]",), prompt)
    return shown(target)


def test_a_prompt_is_shown_to_the_character() -> None:
    text = f"a\tb [red]{'x' * 60}\n\n "
    seen = prompt_shown(PromptText((Part("<s>", "control"), Part(text, "text"))), has_rows=True)
    first, rest = seen.split("\n", 1)
    assert "row 3" in first
    assert "b[0]" in first
    assert rest == f"<s>{text}[end of prompt]\n"
    assert "row" not in prompt_shown(PromptText(()))


def test_what_the_text_of_a_prompt_does_not_show_is_said_behind_it() -> None:
    seen = prompt_shown(PromptText((Part("a ", "text"), Part("</s>", "lookalike")), withdrawn=" "))
    remarks = seen.partition("a </s>[end of prompt")[2]
    assert '" "' in remarks
    assert "</s>" in remarks


@pytest.mark.parametrize("is_data", [False, True])
def test_prompts_go_to_stderr_at_each_call(
    is_data: bool, program: Callable[[str], str], command: Command, tmp_path: Path
) -> None:
    rows = rows_file(tmp_path, '{"word": "w0"}', '{"word": "w1"}')
    given = ["--data", rows] if is_data else ["--arg", "word=w0"]
    code, out, err = command("run", program(CALLS), *given, "--show-prompt")
    assert code == 0
    assert "<|im_start|>" not in out
    for row in range(2 if is_data else 1):
        named = f"row {row} · " if is_data else ""
        for way in range(2):
            shows = f"{named}ways[{way}]]\n<|im_start|>user\nSay w{row}<|im_end|>\n<|im_start|>assistant\n[end"
            assert err.count(shows) == 1
    assert "[end of prompt" not in command("run", program(CALLS), *given)[2]


def test_prompts_and_the_conversation_are_not_shown_at_once(program: Callable[[str], str], command: Command) -> None:
    code, _, err = command("run", program(CALLS), "--arg", "word=a", "--show-prompt", "--stream")
    assert code == 2
    assert "--show-prompt" in err
