"""Tools: what a function gets and gives, what happens when it fails, and what goes on while it runs."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from places import HELPERS
from program_runner import graphs_of
from tiny_engine import tiny_engine

import promptlang.session.opening as opening
from promptlang.cli.app import execute
from promptlang.compiler.passes.optimise import optimise
from promptlang.interpreter.host_functions import ToolError, functions_of, load_functions, tools_of
from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.run import Outcome, RunError
from promptlang.runtime.local_backend import LocalBackend
from promptlang.values.conversion import bind_arguments, to_json

COMMAND = HELPERS / "tiny_command.py"
PATIENCE = 20
"""Seconds after which something that should happen has not."""


def outcome(text: str, tools: dict[str, Any], passes: bool = True, **arguments: Any) -> Outcome:
    graphs = graphs_of(text)
    if passes:
        graphs = optimise(graphs).graphs
    graph = next(iter(graphs.values()))
    interpreter = Interpreter(LocalBackend(tiny_engine()), graphs, tools=functions_of(tools_of(graph, graphs), tools))
    return interpreter.wait(interpreter.start(graph.name, bind_arguments(graph, arguments)))


def run(text: str, **tools: Any) -> Any:
    return to_json(outcome(text, tools).result)


def fault(text: str, **tools: Any) -> RunError:
    with pytest.raises(RunError) as caught:
        run(text, **tools)
    return caught.value


# What goes in and out --------------------------------------------------------------------------------

CALLS_ECHO = """
    record Point:
        x: int
        name: str = "origin"

    tool echo(point: Point, factor: float = 2, tags: list[str] = ["a"]) -> json

    program main():
        got = echo(Point(x=3), tags=["b", "c"])
        return got
    """


def test_a_function_gets_every_parameter_by_name_as_plain_data() -> None:
    def echo(**given: Any) -> Any:
        assert type(given["point"]) is dict
        assert type(given["factor"]) is float
        return given

    assert run(CALLS_ECHO, echo=echo) == {
        "point": {"x": 3, "name": "origin"},
        "factor": 2.0,
        "tags": ["b", "c"],
    }


def test_a_result_is_a_value_of_the_tools_type() -> None:
    text = """
        record Hit:
            title: str
            score: float

        tool search(query: str) -> list[Hit]

        program main() -> str:
            hits = search("x")
            return "${hits[0].title} ${hits[1].score + 1}"
        """

    @dataclass
    class Hit:
        title: str
        score: float

    assert run(text, search=lambda query: (Hit("first", 1), {"title": "second", "score": 2})) == "first 3.0"


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-(10**9), 10**9)
        | st.floats(allow_nan=False, allow_infinity=False)
        | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
        max_leaves=8,
    )
)
def test_json_comes_back_as_it_was(data: Any) -> None:
    text = """
        tool get() -> json

        program main():
            got = get()
            return got
        """
    assert run(text, get=lambda: data) == data


def test_what_a_function_changes_later_the_program_does_not_see() -> None:
    text = """
        tool next() -> list[int]

        program main():
            one = next()
            two = next()
            return [one, two]
        """
    kept: list[int] = []

    def following() -> list[int]:
        kept.append(len(kept))
        return kept

    assert run(text, next=following) == [[0], [0, 1]]


def test_a_tool_without_a_type_gives_nothing() -> None:
    text = """
        tool note(text: str)

        program main():
            note("a")
            got = note("b")
            return got
        """
    notes: list[str] = []
    assert run(text, note=lambda text: notes.append(text)) is None
    assert notes == ["a", "b"]
    assert "must return none" in fault(text, note=lambda text: 3).message


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ("three", 'expected int, not "three"'),
        (True, "expected int, not true"),
        (None, "expected int, not null"),
        (1.5, "expected int, not 1.5"),
        ({1: 2}, "a key of a dict must be a str, not int"),
        ({1, 2}, "set is no plain data"),
        (object(), "object is no plain data"),
    ],
)
def test_a_result_of_another_type_says_what_came(returned: Any, said: str) -> None:
    text = """
        tool count() -> int

        program main():
            x = count()
            return x
        """
    found = fault(text, count=lambda: returned)
    assert "`count` must return int" in found.message
    assert said in found.message
    assert found.span.text == "x = count()"


def test_a_result_that_holds_itself_is_a_fault() -> None:
    text = """
        tool get() -> json

        program main():
            x = get()
            return x
        """
    endless: list[Any] = []
    endless.append(endless)
    assert "nests deeper" in fault(text, get=lambda: endless).message


# Failures --------------------------------------------------------------------------------------------


def test_an_exception_names_the_statement_the_branch_and_the_place() -> None:
    text = """
        tool find(number: int) -> int

        program main():
            fork 3 as tries:
                x = find(10)
        """

    def find(number: int) -> int:
        raise KeyError("no such number")

    found = fault(text, find=find)
    assert "`find` failed: KeyError: 'no such number'" in found.message
    assert "test_tools.py:" in found.message
    assert found.path in [(f"tries[{index}]",) for index in range(3)], "the tool runs for all at once"
    assert found.span.text == "x = find(10)"


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), RecursionError("deep")])
def test_no_exception_of_a_tool_escapes(error: BaseException) -> None:
    text = """
        tool leave()

        program main():
            leave()
        """

    def leave() -> None:
        raise error

    assert type(error).__name__ in fault(text, leave=leave).message


class Mute(Exception):
    """Can't be said."""

    def __str__(self) -> str:
        raise KeyError("no words")


class Closed(dict[str, Any]):
    """Can't be read."""

    def items(self) -> Any:
        raise Mute


def test_what_can_not_be_said_or_read_is_still_one_fault() -> None:
    text = "tool leave() -> json\n\nprogram main():\n    x = leave()\n    return x\n"

    def leave() -> None:
        raise Mute

    for tool in (leave, lambda: Closed(a=1), lambda: [Closed()]):
        message = fault(text, leave=tool).message
        assert "`leave` failed: Mute" in message
        assert "KeyError" in message


@pytest.mark.parametrize("sign", [1, -1])
def test_a_number_that_no_result_could_write_out_is_refused(sign: int) -> None:
    text = "tool leave() -> json\n\nprogram main():\n    x = leave()\n    return x\n"
    assert run(text, leave=lambda: sign * 10**4299) == sign * 10**4299
    assert "4300 digits" in fault(text, leave=lambda: [sign * 10**5000]).message


@pytest.mark.slow
def test_what_tools_print_past_python_goes_to_stderr(tmp_path: Path) -> None:
    program, tools = tmp_path / "p.pl", tmp_path / "tools.py"
    program.write_text("tool shout() -> int\n\nprogram main() -> int:\n    x = shout()\n    return x\n")
    tools.write_text(
        "import os, subprocess, sys\n"
        "def shout():\n"
        "    os.write(1, b'from os\\n')\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"from a child\")'])\n"
        "    print('from python', file=sys.__stdout__)\n"
        "    return 7\n"
    )
    command = [sys.executable, str(COMMAND), "run", str(program), "--tools", str(tools)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout == "7\n"
    assert all(f"from {whom}\n" in ran.stderr for whom in ("os", "a child", "python"))


def test_an_argument_that_is_known_only_at_run_time_is_checked() -> None:
    text = """
        tool find(number: int in 1..5) -> int
        tool get() -> json

        program main():
            number = get()
            x = find(number)
            return x
        """
    found = fault(text, find=lambda number: number, get=lambda: 9)
    assert "'number'" in found.message
    assert "1..5" in found.message


def test_a_tool_nobody_gave_is_a_fault_at_its_call() -> None:
    graphs = graphs_of("tool get() -> int\n\nprogram main():\n    x = get()\n    return x\n")
    interpreter = Interpreter(LocalBackend(tiny_engine()), graphs)
    with pytest.raises(RunError, match="`get`"):
        interpreter.wait(interpreter.start("main", {}))


# Order and concurrency -------------------------------------------------------------------------------


def test_calls_on_one_prompt_keep_the_order_of_the_program() -> None:
    text = """
        tool slow()
        tool quick()

        program main():
            slow()
            quick()
            "text"
            x = gen(max_tokens=2)
            slow()
        """
    calls: list[str] = []

    def slow() -> None:
        time.sleep(0.02)
        calls.append("slow")

    run(text, slow=slow, quick=lambda: calls.append("quick"))
    assert calls == ["slow", "quick", "slow"]


def test_branches_call_tools_at_once() -> None:
    text = """
        tool meet(number: int) -> int

        program main():
            fork number in [1, 2, 3] as all:
                got = meet(number)
            return [one.got for one in all]
        """
    barrier = Barrier(3)

    def meet(number: int) -> int:
        barrier.wait(PATIENCE)
        time.sleep(0.01 * (3 - number))
        return number * 10

    assert run(text, meet=meet) == [10, 20, 30]


def test_the_model_goes_on_while_a_tool_runs() -> None:
    text = """
        tool wait() -> bool
        tool release()

        program main():
            "Some text"
            fork as sides:
                arm waits:
                    got = wait()
                arm writes:
                    x = gen(max_tokens=5)
                    release()
            return sides.waits.got
        """
    event = Event()
    assert run(text, wait=lambda: event.wait(PATIENCE), release=event.set) is True


def test_a_branch_that_is_not_kept_is_not_waited_for() -> None:
    text = """
        tool stall(index: int)

        program main():
            fork index in [0, 1] as all:
                stall(index)
                keep first 1
            return [one.index for one in all]
        """
    event = Event()

    def stall(index: int) -> None:
        if index == 0:
            event.wait(PATIENCE)

    began = time.monotonic()
    assert run(text, stall=stall) == [1]
    assert time.monotonic() - began < PATIENCE / 2
    event.set()


def test_a_branch_that_goes_to_a_tool_while_another_has_arrived_is_not_waited_for() -> None:
    text = """
        tool stall()

        program main():
            fork index in [0, 1] as all:
                if index == 0:
                    x = write()
                    log x
                    stall()
                keep first 1
            return [one.index for one in all]

        program write() -> str:
            "text"
            x = gen(max_tokens=3)
            return x
        """
    event = Event()
    began = time.monotonic()
    assert run(text, stall=lambda: event.wait(PATIENCE) and None) == [1]
    assert time.monotonic() - began < PATIENCE / 2
    event.set()


def test_a_call_that_waits_for_a_thread_does_not_begin_once_its_branch_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("promptlang.interpreter.threads.MOST_THREADS", 1)
    text = """
        tool effect(index: int)

        program main():
            fork index in [0, 1, 2] as all:
                effect(index)
                keep first 1
            effect(9)
            return [one.index for one in all]
        """
    calls: list[int] = []

    def effect(index: int) -> None:
        calls.append(index)
        if index == 1:
            time.sleep(0.5)

    assert run(text, effect=effect) == [0]
    assert 2 not in calls
    assert calls[-1] == 9


def test_a_retry_calls_the_tool_again() -> None:
    text = """
        tool roll() -> int

        program main() -> int:
            "text"
            while true:
                got = roll()
                require got > 2 else retry 5
                break
            return got
        """
    rolls = iter([1, 2, 3, 4])
    assert run(text, roll=lambda: next(rolls)) == 3


@pytest.mark.parametrize("passes", [True, False])
def test_no_pass_drops_doubles_or_moves_a_call(passes: bool) -> None:
    text = """
        tool effect(what: str) -> str

        program main() -> int:
            unread = effect("first")
            "text"
            y = gen(max_tokens=2)
            z = inner("a")
            fork 3 as all:
                w = effect("branch")
            if false:
                v = effect("never")
            return 1

        program inner(what: str) -> str:
            x = effect("inner ${what}")
            return x
        """
    calls: list[str] = []

    def effect(what: str) -> str:
        calls.append(what)
        return what

    outcome(text, {"effect": effect}, passes)
    assert calls[0] == "first"
    assert sorted(calls) == ["branch", "branch", "branch", "first", "inner a"]


# The functions ---------------------------------------------------------------------------------------


async def _async(query: str, limit: int) -> None:
    pass


@pytest.mark.parametrize(
    ("functions", "said"),
    [
        ({}, "missing"),
        ({"search": 3}, "no function"),
        ({"search": lambda query: 1}, "does not fit"),
        ({"search": lambda query, limit, more: 1}, "'more'"),
        ({"search": lambda query, /, limit: 1}, "does not fit"),
        ({"search": _async}, "async"),
    ],
)
def test_a_function_that_does_not_fit_is_named_with_what_would(functions: dict[str, Any], said: str) -> None:
    graphs = graphs_of(
        "tool search(query: str, limit: int = 3)\n\nprogram main():\n    search(1)\n".replace("1", '"a"')
    )
    with pytest.raises(ToolError) as caught:
        functions_of(tools_of(graphs["main"], graphs), functions)
    assert said in str(caught.value)
    assert "def search(query, limit)" in str(caught.value)


@pytest.mark.parametrize(
    "function", [lambda query, limit: 1, lambda **given: 1, lambda query, limit=3, *, more=1: 1], ids=range(3)
)
def test_a_function_may_take_more_ways_than_the_tool_asks(function: Callable[..., int]) -> None:
    graphs = graphs_of('tool search(query: str, limit: int = 3)\n\nprogram main():\n    search("a")\n')
    assert functions_of(tools_of(graphs["main"], graphs), {"search": function}) == {"search": function}


def test_a_program_needs_the_tools_of_the_programs_it_calls_and_no_others() -> None:
    graphs = graphs_of(
        """
        tool one() -> int
        tool two() -> int
        tool three() -> int

        program inner() -> int:
            x = two()
            return x

        program main() -> int:
            x = inner()
            y = one()
            return x + y
        """
    )
    assert [tool.name for tool in tools_of(graphs["main"], graphs)] == ["one", "two"]
    assert [tool.name for tool in tools_of(graphs["inner"], graphs)] == ["two"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def x(", "SyntaxError"),
        ("import there_is_no_such_module", "ModuleNotFoundError"),
        ("import sys\nsys.exit(3)", "tools.py:2"),
        ("raise ValueError", "ValueError"),
    ],
)
def test_a_tools_file_that_fails_says_where(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "tools.py"
    file.write_text(text)
    with pytest.raises(ToolError) as caught:
        load_functions(file)
    assert said in str(caught.value)


def test_a_tools_file_may_import_its_neighbours_and_define_data_classes(tmp_path: Path) -> None:
    (tmp_path / "neighbour_of_tools.py").write_text("VALUE = 7\n")
    (tmp_path / "tools.py").write_text(
        "from __future__ import annotations\nfrom dataclasses import dataclass\nimport neighbour_of_tools\n\n\n"
        "@dataclass\nclass Hit:\n    n: int\n\n\ndef get():\n    return Hit(neighbour_of_tools.VALUE)\n"
    )
    assert load_functions(tmp_path / "tools.py")["get"]().n == 7


# The command -----------------------------------------------------------------------------------------

PROGRAM = """
tool search(query: str) -> int

program main() -> int:
    x = search("a")
    return x
"""


@pytest.mark.parametrize("tools", [None, "def other(): pass", "search = 3", "def search(): pass", "def search("])
def test_wrong_tools_end_the_command_before_the_model_loads(
    tools: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(opening, "load", lambda *_, **__: pytest.fail("the model was loaded"))
    program, file = tmp_path / "p.pl", tmp_path / "t.py"
    program.write_text(PROGRAM)
    file.write_text(tools or "")
    assert execute(["run", str(program), *([] if tools is None else ["--tools", str(file)])]) == 2
    assert "--tools" in capsys.readouterr().err


@pytest.mark.slow
def test_what_tools_print_is_not_the_result(tmp_path: Path) -> None:
    program, file = tmp_path / "p.pl", tmp_path / "t.py"
    program.write_text(PROGRAM)
    file.write_text("print('loading')\ndef search(query):\n    print('searching')\n    return 7\n")
    done = subprocess.run(
        [sys.executable, str(COMMAND), "run", str(program), "--tools", str(file)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "7\n"
    assert "loading" in done.stderr
    assert "searching" in done.stderr


@pytest.mark.slow
def test_an_interrupt_ends_a_run_whose_tool_never_returns(tmp_path: Path) -> None:
    program, file = tmp_path / "p.pl", tmp_path / "t.py"
    program.write_text(PROGRAM)
    file.write_text(
        "import sys, time\ndef search(query):\n    print('waiting', file=sys.stderr, flush=True)\n    time.sleep(600)\n"
    )
    command = [sys.executable, str(COMMAND), "run", str(program), "--tools", str(file)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
