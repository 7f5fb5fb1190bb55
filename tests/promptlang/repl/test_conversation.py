"""Typed statements: they run, or change nothing; what is taken back comes back without a pass of the model."""

from pathlib import Path

import pytest
from tiny_engine import tiny_engine

from promptlang.checker.check import check
from promptlang.compiler.lower import lower
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.observer import SilentObserver
from promptlang.interpreter.run import RunError
from promptlang.repl.conversation import Conversation
from promptlang.repl.known import Known, Refused
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.scripted import ScriptedBackend
from promptlang.syntax.loader import load

DRAW = "assistant: {} = gen(max_tokens=4, temperature=1.0)\n"


def scripted(*answers: str) -> Conversation:
    return Conversation(Known(), lambda: EngineLoop(ScriptedBackend(answers)), SilentObserver())


def tiny(seed: int = 0) -> Conversation:
    return Conversation(Known(), lambda: EngineLoop(LocalBackend(tiny_engine())), SilentObserver(), seed)


def test_statements_share_prompt_and_variables() -> None:
    typed = scripted("four")
    typed.run('user: "2 + 2?"\n')
    typed.run("assistant: x = gen()\n")
    typed.run("y = x.upper()\n")
    assert typed.variables["y"] == "FOUR"
    assert typed.messages == [("user", "2 + 2?"), ("assistant", "four")]


@pytest.mark.parametrize("wrong", ["y = nope\n", "user: (\n", "return 1\n", "tool t()\n", "record R:\n    x: Nope\n"])
def test_what_is_refused_needs_no_model_and_changes_nothing(wrong: str) -> None:
    typed = Conversation(Known(), lambda: pytest.fail("the model was asked for"), SilentObserver())
    with pytest.raises(Refused):
        typed.run(wrong)
    assert not typed.known.variables.own
    assert not typed.known.declared


def test_a_statement_that_fails_leaves_prompt_and_variables() -> None:
    typed = scripted()
    typed.run("x = 0\n")
    with pytest.raises(RunError):
        typed.run('user:\n    "lost"\n    x = 5\n    y = 1 // (x - x)\n')
    assert typed.variables == {"x": 0}
    assert typed.messages == []


def test_declarations_are_known_to_what_follows() -> None:
    typed = scripted()
    typed.run("record Point:\n    x: int\n")
    typed.run("program twice(n: int) -> int:\n    return 2 * n\n")
    typed.run("p = Point(x=3)\n")
    typed.run("t = twice(p.x)\n")
    assert typed.variables["t"] == 6


def test_what_is_taken_back_comes_back_and_nothing_is_computed() -> None:
    typed = tiny()
    typed.run('user: "Hello"\n')
    typed.run(DRAW.format("x"))
    said, variables = typed.messages, typed.variables
    computed = typed.usage.computed_tokens
    assert typed.undo(5) == 2
    assert typed.messages == []
    assert typed.redo(2) == 2
    assert (typed.messages, typed.variables) == (said, variables)
    assert typed.usage.computed_tokens == computed


def test_what_is_typed_anew_draws_the_same() -> None:
    typed = tiny()
    typed.run('user: "Hello"\n')
    typed.run(DRAW.format("x"))
    first = typed.variables["x"]
    typed.undo()
    typed.run(DRAW.format("x"))
    assert typed.variables["x"] == first


def test_a_saved_program_gives_the_same_answers(tmp_path: Path) -> None:
    typed = tiny(seed=7)
    typed.run('"Once"\n')
    typed.run('user: "Hello"\n')
    for name in "xyz":
        typed.run(DRAW.format(name))
    typed.undo()
    file = tmp_path / "saved.pl"
    file.write_text(typed.program)
    checked = check(load(file))
    assert checked.ok, checked.diagnostics
    interpreter = Interpreter(LocalBackend(tiny_engine()), lower(checked), seed=7)
    assert interpreter.wait(interpreter.start("main", {})).variables == typed.variables
