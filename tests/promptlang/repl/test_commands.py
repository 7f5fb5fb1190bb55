"""What begins with a colon: what is shown, and how a conversation goes on."""

import io
import sys
from pathlib import Path

import pytest
from tiny_engine import tiny_engine

from promptlang.checker.check import check
from promptlang.compiler.lower import lower
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.run import RunError
from promptlang.repl.commands import COMMANDS, run_command
from promptlang.repl.conversation import Conversation
from promptlang.repl.known import Known, Refused
from promptlang.repl.printer import Printer
from promptlang.repl.rewriting import beginning_with, with_more_tokens
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.scripted import ScriptedBackend
from promptlang.syntax.loader import load

DRAW = "assistant: x = gen(max_tokens=4, temperature=1.0)\n"
FORK = """\
fork 3 as drafts:
    assistant: body = gen(max_tokens=3, temperature=1.0)
"""


class Typed:
    """A conversation on the tiny engine, and what its commands show."""

    def __init__(self, *statements: str) -> None:
        self._out = io.StringIO()
        self._printer = Printer(self._out)
        self.conversation = Conversation(Known(), lambda: EngineLoop(LocalBackend(tiny_engine())), self._printer)
        for statement in ('user: "Hello"\n', *statements):
            self.conversation.run(statement)

    def __getitem__(self, name: str) -> object:
        return self.conversation.variables[name]

    def __call__(self, command: str) -> str:
        self._printer.end_line()
        begin = self._out.tell()
        run_command(self.conversation, command, self._printer)
        return self._out.getvalue()[begin:]

    def saved(self, folder: Path, seed: int = 0) -> dict[str, object]:
        """The variables of the saved program, run by itself."""
        file = folder / "saved.pl"
        self(f":save {file}")
        checked = check(load(file))
        assert checked.ok, checked.diagnostics
        interpreter = Interpreter(LocalBackend(tiny_engine()), lower(checked), seed=seed)
        return interpreter.wait(interpreter.start("main", {})).variables


def test_help_tells_every_command() -> None:
    shown = Typed()(":help")
    assert all(f":{name}" in shown for name in COMMANDS)


@pytest.mark.parametrize(
    "wrong", [":nope", ":prompt text", ":undo many", ":switch", ":switch nope", ":load", ":save", ":cost 1", ":seed -1"]
)
def test_what_is_wrong_is_refused(wrong: str) -> None:
    typed = Typed()
    before = typed.conversation.messages
    with pytest.raises(Refused):
        typed(wrong)
    assert typed.conversation.messages == before


@pytest.mark.parametrize("command", [":again", ":continue", ":edit", ":alternatives", ":why"])
def test_where_nothing_ran_there_is_no_last_statement(command: str) -> None:
    typed = Typed()
    typed(":undo")
    with pytest.raises(Refused):
        typed(command)


@pytest.mark.parametrize("command", [":tree", ":prompt tokens", ":model"])
def test_a_backend_without_tokens_shows_none(command: str) -> None:
    conversation = Conversation(Known(), lambda: EngineLoop(ScriptedBackend(())), Printer(io.StringIO()))
    with pytest.raises(Refused):
        run_command(conversation, command, Printer(io.StringIO()))
    conversation.close()


def test_the_tokens_of_a_prompt_tell_what_is_cached() -> None:
    typed = Typed(DRAW, 'user: "More"\n')
    *lines, last = typed(":prompt tokens").splitlines()
    marks = [line[0] for line in lines]
    assert "".join(marks) == "=" * marks.count("=") + " " * marks.count(" ")
    assert marks.count("=") > 1
    assert marks.count(" ") > 1
    assert "<|im_start|>" in lines[0]
    assert last.startswith(f"{len(lines)} tokens, {marks.count('=')} ")


def test_the_tree_has_a_branch_for_each_draft() -> None:
    shown = Typed(FORK)(":tree")
    assert any("=" in line and "<|im_start|>" in line for line in shown.splitlines())
    assert shown.count("\n-  ") == len({*Typed(FORK)["drafts"]})  # type: ignore[misc]


def test_again_draws_other_numbers_each_time_and_undo_takes_the_last_back() -> None:
    typed = Typed(DRAW)
    found = [typed["x"]]
    for _ in range(3):
        typed(":again")
        found.append(typed["x"])
    assert len(set(found)) == 4
    typed(":again 0")
    assert typed["x"] == found[0]
    typed(":undo")
    assert typed.conversation.messages == [("user", "Hello")]


def test_what_runs_with_one_seed_is_saved_and_several_are_told(tmp_path: Path) -> None:
    typed = Typed()
    typed(":seed 5")
    typed.conversation.run(DRAW)
    typed(":undo 2")
    typed(":redo 2")
    assert "several" in typed(f":save {tmp_path / 'x.pl'}")
    typed(":undo 2")
    typed.conversation.run(DRAW)
    assert "--seed 5" in typed(f":save {tmp_path / 'x.pl'}")
    assert typed.saved(tmp_path, seed=5) == typed.conversation.variables


def test_again_that_fails_leaves_the_last_statement() -> None:
    typed = Typed("n = 0\n", "m = 1\n")
    with pytest.raises(Refused):
        typed.conversation.anew("m = nope\n")
    with pytest.raises(RunError):
        typed.conversation.anew("m = 1 // n\n")
    assert typed["m"] == 1
    assert typed.conversation.last == "m = 1\n"


def test_an_answer_goes_on_from_what_it_was(tmp_path: Path) -> None:
    typed = Typed(DRAW)
    before = str(typed["x"])
    typed(":continue")
    after = str(typed["x"])
    assert after.startswith(before)
    assert len(after) > len(before)
    assert typed.saved(tmp_path) == {"x": after}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("gen()\n", "gen(max_tokens=512)\n"),
        ("gen(stop='.',)\n", "gen(stop='.',max_tokens=512)\n"),
        ("gen(max_tokens=n)\n", "gen(max_tokens=2 * (n))\n"),
    ],
)
def test_more_tokens(before: str, after: str) -> None:
    assert with_more_tokens(before) == after


def test_edit_runs_what_the_editor_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys, pathlib\nfile = pathlib.Path(sys.argv[1])\nfile.write_text(file.read_text() + 'n = 2')"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {editor}")
    typed = Typed("m = 1\n")
    typed(":edit")
    assert typed.conversation.variables == {"m": 1, "n": 2}
    monkeypatch.setenv("EDITOR", "false")
    with pytest.raises(Refused):
        typed(":edit")


def test_alternatives_are_the_likeliest_tokens_and_one_can_be_taken(tmp_path: Path) -> None:
    typed = Typed("assistant: x = gen(max_tokens=1)\n")
    shown = typed(":alternatives").splitlines()
    chances = [float(line.split()[1].rstrip("%")) for line in shown]
    assert len(shown) == 8
    assert chances == sorted(chances, reverse=True)
    assert shown[0].endswith(repr(typed["x"]))
    spent = typed.conversation.usage
    before = spent.generated_tokens if spent else 0
    typed(":alternatives")
    assert spent is not None
    assert spent.generated_tokens == before
    typed(":alternatives 2")
    assert repr(typed["x"]).startswith(shown[1].split("%  ")[1][:-1])
    assert typed.saved(tmp_path) == typed.conversation.variables


def test_alternatives_are_those_that_the_type_allows() -> None:
    typed = Typed("assistant: x = gen(bool)\n")
    shown = typed(":alternatives").splitlines()
    assert {line.split("%  ")[1].strip("'")[0] for line in shown} == {"t", "f"}


def test_why_tells_what_the_type_allowed_and_what_it_refused() -> None:
    typed = Typed("assistant: x = gen(/(cat|cow) (sat|ran)/)\n", 'user: "More"\n')
    typed(":undo")
    first, *rest = typed(":why 1").splitlines()
    count = int(first.split("allowed ")[1])
    allowed = [line.split("%  ")[1] for line in rest if line.split()[0] == "allowed"]
    refused = [line.split("%  ")[1] for line in rest if line.split()[0] == "refused"]
    assert len(allowed) == min(4, count)
    assert {text[:2] for text in allowed} == {"'c"}
    assert len(refused) == 4
    assert not {text for text in refused if text in allowed}
    chances = [float(line.split()[1].rstrip("%")) for line in rest if line.split()[0] == "refused"]
    assert chances == sorted(chances, reverse=True)
    last = typed(":why").splitlines()[0]
    steps = int(last.split(" of ")[1].split(":")[0])
    assert last.startswith(f"token {steps} of {steps}: ")
    assert typed["x"].endswith(last.split("'")[1])
    with pytest.raises(Refused):
        typed(f":why {steps + 1}")


def test_free_text_has_no_type_that_allowed_anything() -> None:
    with pytest.raises(Refused):
        Typed("assistant: x = gen(max_tokens=1)\n")(":why")


def test_a_beginning_is_text_whatever_it_holds() -> None:
    assert beginning_with("x = gen()\n", '"${') == '"\\"\\${"\nx = gen(heal=false)\nx = "\\"\\${" + x\n'
    with pytest.raises(Refused):
        beginning_with("x = gen(int)\n", "1")


def test_branches_are_listed_and_one_goes_on(tmp_path: Path) -> None:
    typed = Typed(FORK)
    shown = typed(":branches")
    assert [line.split()[0] for line in shown.splitlines()] == ["drafts[0]", "drafts[1]", "drafts[2]"]
    typed(":switch drafts[1]")
    assert typed.conversation.messages[-1] == ("assistant", typed["body"])
    typed(":undo")
    assert typed.conversation.messages == [("user", "Hello")]
    typed(":redo")
    assert typed.saved(tmp_path)["body"] == typed["body"]


def test_a_file_of_statements_runs_up_to_its_first_error(tmp_path: Path) -> None:
    file = tmp_path / "some.pl"
    file.write_text("record R:\n    n: int\n\nr = R(n=1)\nm = r.n + 1\nbad = nope\nlater = 1\n")
    typed = Typed()
    with pytest.raises(Refused, match=r"some\.pl:6:"):
        typed(f":load {file}")
    assert typed["m"] == 2
    assert "later" not in typed.conversation.variables


def test_cost_and_model_tell_numbers() -> None:
    typed = Typed(DRAW)
    usage = typed.conversation.usage
    assert usage is not None
    assert f"generated_tokens {usage.generated_tokens:13}" in typed(":cost")
    assert "tiny" in typed(":model")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "some.pl"
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(Refused, match="UTF-8"):
        Typed()(f":load {file}")


def test_a_prompt_that_is_too_long_is_refused_by_all_that_look_at_it() -> None:
    typed = Typed("assistant: x = gen(max_tokens=1)\n")
    typed.conversation.run(f'"{"many words " * 4000}"\n')
    with pytest.raises(Refused):
        typed(":prompt tokens")
    typed(":undo")
    typed(":prompt tokens")
