"""What a terminal shows while a program runs."""

import io

from rich.console import Console

from promptlang.cli.stream import ConversationView, LogView


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
