"""What users test their programs with: scripts, random answers, a fixture, and no model at all."""

import asyncio
import os
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import pytest
from places import EXAMPLES, ROOT

import promptlang as pl
import promptlang.session.opening as opening

ASK = """
program ask(question: str) -> str:
    user: "${question}"
    assistant: answer = gen(max_tokens=9)
    return answer
"""


@dataclass(frozen=True)
class Reply:
    team: str
    stars: Annotated[int, pl.Range(1, 5)]


@pl.program
def reply(p: pl.Prompt, ticket: str) -> Reply:
    p.user(ticket)
    with p.assistant():
        team = p.select(["billing", "network"])
    p.user("Rate it.")
    with p.assistant():
        return Reply(team, p.gen(Annotated[int, pl.Range(1, 5)]))


@pl.program
def both(p: pl.Prompt) -> tuple[str, Reply]:
    """Calls a program of a file, and one of a function."""
    return pl.compile(ASK)("What?"), reply("My bill")


@pytest.fixture(autouse=True)
def no_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "load", lambda *_, **__: pytest.fail("a model was loaded"))


def test_a_script_reaches_programs_of_functions_and_files_and_those_they_call() -> None:
    with pl.testing.answers(["This.", "network", "4"]) as script:
        assert both() == ("This.", Reply("network", 4))
    assert script.seen == [
        "user: What?\nassistant: ",
        "user: My bill\nassistant: ",
        "user: My bill\nassistant: network\nuser: Rate it.\nassistant: ",
    ]


def test_a_script_may_go_by_what_the_prompt_holds() -> None:
    def answer(prompt: str) -> str:
        return "3" if "Rate" in prompt else "billing" if "bill" in prompt else "network"

    tickets = [{"ticket": ticket} for ticket in ("My bill", "No wifi", "A bill")]
    with pl.testing.answers(answer):
        assert [one.team for one in reply.batch(tickets)] == ["billing", "network", "billing"]


def test_a_script_answers_in_other_threads_and_in_event_loops() -> None:
    @pl.program
    async def aside(p: pl.AsyncPrompt) -> str:
        p.text("Ask.")
        return await p.gen(max_tokens=3)

    def answer(prompt: str) -> str:
        return "2" if "Rate" in prompt else "billing"

    expected = Reply("billing", 2)
    with pl.testing.answers(answer), ThreadPoolExecutor(4) as pool:
        assert list(pool.map(reply, ["A", "B", "C", "D"])) == [expected] * 4
        assert asyncio.run(reply.acall("A")) == expected
        assert asyncio.run(aside()) == "billing"


def test_what_was_not_asked_for_is_complained_of() -> None:
    with pytest.raises(pl.testing.ScriptError, match="'5'"), pl.testing.answers(["billing", "4", "5"]):
        reply("My bill")


def test_the_tests_own_failure_comes_before_the_scripts() -> None:
    with pytest.raises(LookupError), pl.testing.answers(["left"]):
        raise LookupError


def test_an_answer_too_few_and_one_that_does_not_fit_fail_the_program() -> None:
    with pl.testing.answers(["billing"]), pytest.raises(pl.RunError, match="no answer left"):
        reply("My bill")
    with pl.testing.answers(["billing", "6"]), pytest.raises(pl.RunError, match="'6'"):
        reply("My bill")


def test_the_engine_from_before_comes_back(engine: pl.Engine) -> None:
    with pl.testing.random_answers():
        assert pl.default_engine() is not engine
    assert pl.default_engine() is engine
    with pytest.raises(LookupError), pl.testing.answers(["a"]):
        raise LookupError
    assert pl.default_engine() is engine


def test_random_answers_fit_and_go_by_the_seed() -> None:
    def draw(seed: int) -> list[Reply]:
        with pl.testing.random_answers(seed):
            return [reply(f"Ticket {number}") for number in range(8)]

    drawn = draw(1)
    assert draw(1) == drawn != draw(2)
    assert {one.team for one in drawn} == {"billing", "network"}
    assert len({one.stars for one in drawn}) > 2


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("triage", {"ticket": "My bill"}),
        ("chat", {}),
        ("tree_of_thought", {}),
        ("judge", {}),
        ("beam", {}),
    ],
)
def test_random_answers_carry_whole_programs(name: str, arguments: dict[str, str]) -> None:
    with pl.testing.random_answers() as told:
        pl.load(EXAMPLES / f"{name}.pl")(**arguments)
    assert told.seen


def test_stop_strings_are_in_no_random_answer() -> None:
    @pl.program
    def short(p: pl.Prompt, number: int) -> str:
        p.text(str(number))
        return p.gen(stop=[" ", "e"])

    with pl.testing.random_answers():
        for number in range(20):
            assert not set(" e") & set(short(number))


# In other processes ------------------------------------------------------------------------------------------


def run(*command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
        check=False,
    )


def test_the_plugin_is_there_and_light() -> None:
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    plugin = entries["pytest11"]["promptlang"]
    said = f"import sys, {plugin}; print({{'torch', 'numpy', 'greenlet'}} & set(sys.modules))"
    assert run("-c", said).stdout == "set()\n"


@pytest.mark.slow
def test_scripted_tests_load_no_torch_and_the_fixture_tells_of_what_is_left(tmp_path: Path) -> None:
    (tmp_path / "test_user.py").write_text(
        f"""
import sys
import promptlang as pl

ask = pl.compile('''{ASK}''')

def test_told(pl_answers):
    script = pl_answers(["Yes."])
    assert ask("Well?") == "Yes."
    assert len(script.seen) == 1
    assert "torch" not in sys.modules

def test_left(pl_answers):
    pl_answers(["Yes.", "No."])
    assert ask("Well?") == "Yes."
""",
        encoding="utf-8",
    )
    plain = ("-c", os.devnull, "-p", "no:cacheprovider")
    # By name, and not by its entry point, which is there only after an installation.
    named = ("-p", "promptlang.api.pytest_plugin")
    done = run("-m", "pytest", *plain, "-q", *named, str(tmp_path), PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "2 passed, 1 error" in done.stdout, done.stdout
    assert "ScriptError" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("-c", "from promptlang.cli.app import main; main()", "run", "examples/chat.pl"),
        ("-c", "import promptlang as pl; pl.load('examples/chat.pl')()"),
        ("-c", "import promptlang as pl; pl.program(lambda p: p.text('a') or p.gen())()"),
        ("-c", "import promptlang as pl; list(pl.load('examples/chat.pl').batch([{}]))"),
        ("-c", "import asyncio, promptlang as pl; asyncio.run(pl.load('examples/chat.pl').acall())"),
        ("-c", "from promptlang.session.session import Session; Session().open()"),
    ],
)
def test_no_door_loads_a_model_where_none_may_be(command: tuple[str, ...]) -> None:
    done = run(*command, PROMPTLANG_NO_MODEL="1")
    assert done.returncode != 0
    assert "PROMPTLANG_NO_MODEL" in done.stderr
