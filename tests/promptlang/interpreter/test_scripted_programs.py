"""Programs on a backend that is no model: the interpreter needs texts and shapes, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest
from scripted_runner import Player

from promptlang.interpreter.observer import SilentObserver
from promptlang.interpreter.run import RunError
from promptlang.runtime.backend import EVERYTHING, Capability, PromptText
from promptlang.runtime.scripted import Line, ScriptError


@pytest.fixture
def play(tmp_path: Path) -> Player:
    return Player(tmp_path)


def test_turns_answers_and_records(play: Player) -> None:
    played = play(
        """
        record Pet:
            name: str
            age: int in 0..30

        program main(animal: str):
            system: "You know animals."
            user: "Describe a ${animal}."
            assistant:
                pet = gen(Pet)
                " It is"
                size = select(" small", " large")
                heavy = score(" and heavy")
            return [pet.name, pet.age + 1, size, heavy]
        """,
        ['{"name":"Rex","age":3}', " large", -2.5],
        animal="dog",
    )
    assert played.result == ["Rex", 4, " large", -2.5]
    start = [("system", "You know animals."), ("user", "Describe a dog.")]
    assert played.seen == [
        [*start, ("assistant", "")],
        [*start, ("assistant", '{"name":"Rex","age":3} It is')],
        [*start, ("assistant", '{"name":"Rex","age":3} It is large')],
    ]


def test_a_fork_keeps_its_best_branches_and_adopts_one(play: Player) -> None:
    played = play(
        """
        program main():
            "Write: "
            fork 3 as tries:
                body = gen(max_tokens=5)
                " Mark: "
                mark = gen(int in 1..5)
                keep 2 by mark
            adopt tries[1]
            " And then: "
            more = gen(max_tokens=5)
            return [[[one.index, one.body] for one in tries], body, more]
        """,
        ["a", "b", "c", "2", "1", "5", "end"],
    )
    assert played.result == [[[0, "a"], [2, "c"]], "c", "end"]
    assert played.seen[-1] == [(None, "Write: c Mark: 5 And then: ")]


def test_a_beam_goes_on_from_the_best_paths(play: Player) -> None:
    played = play(
        """
        program main():
            "Say: "
            beam depth=2 width=1 branch=2 by len(word) as paths:
                word = gen(max_tokens=5, temperature=1)
            return [paths[0].text, paths[0].score]
        """,
        ["ab", "abc", "x", "yy"],
    )
    assert played.result == ["abcyy", 2]
    assert [prompt[0][1] for prompt in played.seen] == ["Say: ", "Say: ", "Say: abc", "Say: abc"]


def test_require_asks_again_from_its_checkpoint(play: Player) -> None:
    played = play(
        """
        program main():
            "Name a number: "
            n = gen(int in 1..99)
            require n > 10 else retry 3
            return n
        """,
        ["4", "7", "12"],
    )
    assert played.result == 12
    assert played.seen == [[(None, "Name a number: ")]] * 3


def test_calls_tools_and_loops(play: Player) -> None:
    played = play(
        """
        tool look(thing: str) -> int

        program main(things: list[str]):
            notes = []
            for thing in things:
                count = look(thing)
                note = judge(thing, count)
                notes = notes + [note]
            return notes

        program judge(thing: str, count: int):
            user: "${count} of ${thing}?"
            assistant: verdict = gen(max_tokens=5)
            return verdict
        """,
        lambda text: text.split("\n")[0].removeprefix("user: ").upper(),
        tools={"look": lambda thing: len(thing)},
        things=["fox", "lizard"],
    )
    assert played.result == ["3 OF FOX?", "6 OF LIZARD?"]


def test_a_function_answers_by_the_prompts_text(play: Player) -> None:
    played = play(
        """
        program main():
            user: "How are you?"
            assistant: x = gen(max_tokens=5)
            return x
        """,
        repr,
    )
    assert played.result == repr("user: How are you?\nassistant: ")


@pytest.mark.parametrize(
    ("statement", "script", "message"),
    [
        ("x = gen(int in 1..5)", ["six"], "answer 1 of the script, 'six', is no answer of its type: .*1..5"),
        ("x = gen(int in 1..5)", ["6"], r"int in 1\.\.5"),
        ('x = gen(stop="b")', ["abc"], "'b' stops"),
        ('x = select("a", "b")', ["c"], "'c', is none of the options 'a', 'b'"),
        ('x = score("a")', ["a"], "no log-probability"),
        ("x = gen(max_tokens=2)", [-1.0], "no text"),
        ("x = gen(max_tokens=2)", [], "no answer left"),
    ],
)
def test_a_script_that_does_not_fit_is_a_fault_of_the_statement(
    play: Player, statement: str, script: list[str | float], message: str
) -> None:
    with pytest.raises(RunError, match=message) as caught:
        play(f'program main():\n    "Say: "\n    {statement}\n    log x\n', script)
    assert caught.value.span.text == statement


def test_answers_that_nobody_asked_for_are_an_error(play: Player) -> None:
    with pytest.raises(ScriptError, match=r"2 answers.*'b'"):
        play('program main():\n    "Say: "\n    x = gen()\n    return x\n', ["a", "b", "c"])


@pytest.mark.parametrize(
    ("capability", "statement"),
    [
        (Capability.SHAPES, "x = gen(int in 1..5)"),
        (Capability.LOGPROBS, "x = gen(logprobs=true)"),
        (Capability.SELECT, 'x = select("a", "b")'),
        (Capability.SCORE, 'x = score("a")'),
    ],
)
def test_what_a_backend_lacks_is_named_with_the_statement(play: Player, capability: Capability, statement: str) -> None:
    with pytest.raises(RunError, match=f"backend of script does not serve {capability.value}.*--model") as caught:
        play(f'program main():\n    "Say: "\n    {statement}\n    log x\n', [], EVERYTHING - {capability})
    assert caught.value.span.text == statement


def test_any_text_needs_no_shapes(play: Player) -> None:
    text = 'program main():\n    "Say: "\n    x = gen(str)\n    return x\n'
    assert play(text, ["b"], EVERYTHING - {Capability.SHAPES}).result == "b"


def test_probs_need_log_probabilities(play: Player) -> None:
    text = 'program main():\n    "Say: "\n    x = select("a", "b")\n    return x.probs\n'
    assert play(text, ["b"]).result == {"a": 0.0, "b": 1.0}
    with pytest.raises(RunError, match="log-probabilities"):
        play(text, ["b"], EVERYTHING - {Capability.LOGPROBS})


BRANCH = """
    program main():
        "Say: "
        fork 2 as b:
            x = gen(max_tokens=3)
        return [one.VALUE for one in b]
    """


def test_branches_run_without_log_probabilities_until_one_is_read(play: Player) -> None:
    without = EVERYTHING - {Capability.LOGPROBS}
    lines = [Line("a", (-1.0, -0.5)), Line("b", (-2.0,))]
    assert play(BRANCH.replace("VALUE", "text"), lines, without).result == ["a", "b"]
    assert play(BRANCH.replace("VALUE", "logprob"), lines).result == [-1.5, -2.0]
    with pytest.raises(RunError, match="no `logprob`"):
        play(BRANCH.replace("VALUE", "logprob"), lines, without)


# What a branch added -----------------------------------------------------------------------------------------


def test_the_text_of_a_branch_that_adopts_is_what_its_prompt_holds(play: Player) -> None:
    played = play(
        """
        program main():
            "Start."
            fork 1 as outer:
                " A"
                a = gen(max_tokens=3)
                fork 2 as inner:
                    b = gen(max_tokens=3)
                " C"
                c = gen(max_tokens=3)
                adopt inner[1]
                " D"
                d = gen(max_tokens=3)
            return [outer[0].text, outer[0].logprob]
        """,
        [Line("a", (-1.0,)), Line("b0", (-2.0,)), Line("b1", (-4.0,)), Line("c", (-8.0,)), Line("d", (-16.0,))],
    )
    assert played.seen[-1] == [(None, "Start. Aab1 D")]
    assert played.result == [" Aab1 Dd", -21.0]


def test_the_text_of_a_branch_that_adopts_an_older_branch_is_what_it_does_not_share_with_its_fork(
    play: Player,
) -> None:
    played = play(
        """
        program main():
            "Start."
            fork 2 as first:
                a = gen(max_tokens=3)
            " Between."
            fork 1 as second:
                " X"
                adopt first[1]
                " Y"
                y = gen(max_tokens=3)
            return [second[0].text, second[0].logprob]
        """,
        [Line("a0", (-1.0,)), Line("a1", (-2.0,)), Line("y", (-4.0,))],
    )
    assert played.seen[-1] == [(None, "Start.a1 Y")]
    assert played.result == ["a1 Yy", -6.0]


def test_adopting_brings_back_the_variables_of_the_fork(play: Player) -> None:
    played = play(
        """
        program main():
            "Start."
            n = 1
            fork 1 as b:
                a = gen(max_tokens=3)
            n = 2
            adopt b[0]
            return [n, a]
        """,
        ["x"],
    )
    assert played.result == [1, "x"]


def test_a_withdrawn_attempt_counts_neither_in_text_nor_in_logprob(play: Player) -> None:
    played = play(
        """
        program main():
            "Start."
            fork 1 as b:
                x = gen(max_tokens=3)
                require x != "bad" else retry 2
            return [b[0].text, b[0].logprob]
        """,
        [Line("bad", (-8.0,)), Line("bad", (-4.0,)), Line("good", (-1.0,))],
    )
    assert played.result == ["good", -1.0]


def test_turns_begin_lines_in_the_text_of_a_branch(play: Player) -> None:
    played = play(
        """
        program main():
            user: "Start."
            fork 1 as b:
                assistant: x = gen(max_tokens=3)
                user: "Go on.\\n"
                assistant: y = gen(max_tokens=3)
            return b[0].text
        """,
        ["x", "y"],
    )
    assert played.result == "x\nGo on.\ny"


@pytest.mark.slow
def test_no_model_library_is_loaded() -> None:
    code = (
        "import promptlang.interpreter.interpreter, promptlang.runtime.scripted, sys;"
        "print(*({'torch', 'transformers'} & set(sys.modules)))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


# Why an answer ended ------------------------------------------------------------------------------------------


def test_every_text_and_number_says_why_it_ended(play: Player) -> None:
    played = play(
        """
        type Team = "a" | "b"


        program main() -> list[json]:
            text = gen(max_tokens=3)
            number = gen(int, logprobs=true)
            team = gen(Team)
            chosen = select("x", "y")
            sure = gen(bool)
            again = told(team, text)
            return [text.finish, number.finish, number + 1, number.logprobs, team.finish, chosen.finish, sure, again]


        program told(team: Team, text: str) -> str:
            return text + team
        """,
        [Line("Once", finish="length"), Line("7", (-0.5,), "end"), Line("a", finish="done"), "y", "true"],
    )
    assert played.result == ["length", "end", 8, [-0.5], "done", "done", True, "Oncea"]


class Prompts(SilentObserver):
    """Takes down what the model is asked about."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, tuple[str, ...], str]] = []

    def prompt(self, row: int, path: tuple[str, ...], prompt: PromptText) -> None:
        self.seen.append((row, path, prompt.text))


def test_an_observer_sees_each_prompt_with_its_row_and_branch(play: Player) -> None:
    prompts = Prompts()
    played = play(
        """
        program main():
            user: "Say a word."
            fork 2 as ways:
                assistant: word = gen()
            user: "Is it ${ways[0].word}?"
            assistant: sure = select("yes", "no")
            odds = score("sure")
            return [sure, odds]
        """,
        ["fox", "dog", "yes", -1.5],
        observer=prompts,
    )
    assert played.result == ["yes", -1.5]
    asked = "user: Say a word.\nassistant: "
    assert prompts.seen[:2] == [(0, (f"ways[{way}]",), asked) for way in range(2)]
    again = "user: Say a word.\nuser: Is it fox?\nassistant: "
    assert prompts.seen[2:] == [(0, (), again), (0, (), f"{again}yes")]
