"""`require`: where it goes back to, what it takes back, and when it gives up; on the tiny random model."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from program_runner import Runner, fault

from promptlang.interpreter.observer import SilentObserver


@dataclass
class Seen(SilentObserver):
    """Takes down what is logged, and what is withdrawn."""

    logs: list[str] = field(default_factory=list)
    withdrawn: list[tuple[str, ...]] = field(default_factory=list)

    def log(self, path: tuple[str, ...], text: str) -> None:
        self.logs.append(text)

    def retried(self, path: tuple[str, ...], why: str) -> None:
        self.withdrawn.append(path)


ASK = "y = gen(int in 0..9, temperature=3)"


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


def logs_of(run: Runner, body: str, **arguments: Any) -> str:
    """What a program logs, as one text."""
    seen = Seen()
    lines = "".join(f"    {line}\n" for line in body.strip().split("\n"))
    run.outcome(f"program main():\n{lines}", observer=seen, **arguments)
    return "".join(seen.logs)


@pytest.mark.parametrize("wanted", range(3))
def test_an_answer_is_drawn_anew_until_it_is_what_is_required(run: Runner, wanted: int) -> None:
    found = run(
        """
        program main(wanted: int):
            "A digit:"
            x = gen(int in 0..9, temperature=3)
            require x == wanted else retry 64
            return x
        """,
        wanted=wanted,
    )
    assert found == wanted


def test_what_is_withdrawn_leaves_no_trace(run: Runner) -> None:
    program = """
        program main(least: int):
            "Digits:"
            fork 1 as b:
                x = gen(int in 0..9, temperature=3)
                if x < least:
                    low = x
                " or "
                y = gen(max_tokens=3, temperature=1)
                require x >= least else retry 64
            return [b[0].text, b[0].logprob, b[0].x, b[0].y, "${b}"]
        """
    text, logprob, x, y, variables = run(program, least=9)
    assert text == f"{x} or {y}"
    assert logprob > -40
    assert '"low"' not in variables


def test_a_retry_computes_no_token_again(run: Runner) -> None:
    seen = Seen()
    usage = run.outcome(
        f"""
        program main():
            "{"The quick brown fox jumps over the lazy dog. " * 8}"
            x = gen(int in 0..9, temperature=3)
            require x == 7 else retry 64
            return x
        """,
        observer=seen,
    ).usage
    assert len(seen.withdrawn) > 2
    assert usage.calls == len(seen.withdrawn) + 1
    assert usage.computed_tokens <= usage.optimal_tokens + usage.calls
    assert usage.optimal_tokens * 2 < usage.requested_tokens


def test_a_requirement_that_is_never_met_is_a_fault_of_its_branch(run: Runner) -> None:
    error = fault(
        run,
        """
        program main(topic: str):
            "About:"
            fork 2 as tries:
                x = gen(max_tokens=2, temperature=1)
                require x == topic and tries_of(x) else retry 3 else "no answer on ${topic}"
            return tries[0].x
        """.replace(" and tries_of(x)", ""),
        topic="the moon and the stars",
    )
    assert error.message == "no answer on the moon and the stars (after 3 retries)"
    assert error.path == ("tries[0]",)
    assert error.span.text.startswith("require x == topic")


def test_without_a_message_the_fault_names_the_condition(run: Runner) -> None:
    error = fault(run, "program main(x: int):\n    require x >  3 else retry 0", x=1)
    assert error.message == "`x > 3` is not met"


@pytest.mark.parametrize(
    ("body", "logged"),
    [
        # The answer that is read, not those before it.
        ('log "a"\nx = gen(max_tokens=1)\nASK\nlog "b"\nREQUIRE', "a(b)c"),
        # What is computed from an answer goes back to the answer.
        ('log "a"\nx = gen(int in 0..9, temperature=3)\nlog "b"\ny = x\ny = y + 0\nREQUIRE', "a(b)c"),
        # A whole turn, with all that is in it.
        ('assistant:\n    log "b"\n    ASK\nuser: "Well."\nREQUIRE', "(b)c"),
        # The earliest of two that are read.
        ('ASK\nlog "b"\nz = gen(max_tokens=1)\nrequire y == 3 and z != "*" else retry 64', "(b)c"),
        # An answer that is there on some way only, and the one that stands where it isn't.
        ('ASK\nlog "b"\nif y < 0:\n    y = gen(int in 3..3)\nREQUIRE', "(b)c"),
        # A branch that was gone on from.
        ('log "a"\nfork 1 as f:\n    ASK\nlog "b"\nadopt f[0]\nREQUIRE', "a(b)c"),
        # In a turn.
        ('assistant:\n    log "a"\n    ASK\n    log "b"\n    REQUIRE', "a(b)c"),
        # In a loop.
        ('for i in [1, 2]:\n    log "a"\n    ASK\n    log "b"\n    REQUIRE', "a(b)a(b)c"),
        # In a branch.
        ('fork 1 as f:\n    log "a"\n    ASK\n    log "b"\n    REQUIRE\nlog f[0].text[:0]', "a(b)c"),
    ],
)  # fmt: skip
def test_it_goes_back_to_the_answer_that_the_condition_comes_from(run: Runner, body: str, logged: str) -> None:
    body = body.replace("ASK", ASK).replace("REQUIRE", "require y == 3 else retry 64") + '\nlog "c"'
    # A seed may draw what is required at once.
    texts = [logs_of(run, body, seed=seed) for seed in range(3)]
    assert any(text.count("b") > logged.count("b") for text in texts)
    for text in texts:
        assert repeats(text, logged)


def repeats(text: str, logged: str) -> bool:
    """Whether a text is one in which what is in brackets may stand several times."""
    return re.fullmatch(logged.replace(")", ")+"), text) is not None


def test_a_group_that_an_earlier_requirement_holds_is_done_again_as_a_whole(run: Runner) -> None:
    body = """
x = gen(int in 0..9, temperature=3)
log "b"
y = gen(int in 0..9, temperature=3)
require x >= 0 else retry 1
require y == 3 else retry 64
log "c"
"""
    assert any(logs_of(run, body, seed=seed).startswith("bb") for seed in range(3))


def test_calls_are_made_again(run: Runner) -> None:
    mark, x = run(
        """
        program main():
            "Digits:"
            x = gen(int in 0..9, temperature=3)
            mark = rate(x)
            require mark == 7 else retry 64
            return [mark, x]

        program rate(x: int) -> int:
            "Rate ${x}:"
            y = gen(int in 0..9, temperature=3)
            return y
        """
    )
    assert mark == 7
    assert 0 <= x <= 9


def test_in_a_fragment_its_own_variables_go_back(run: Runner) -> None:
    assert (
        run(
            """
        program main():
            x = "mine"
            use ask(7)
            return x

        fragment ask(wanted: int):
            "A digit:"
            x = gen(int in 0..9, temperature=3)
            require x == wanted else retry 64
        """
        )
        == "mine"
    )


def test_the_same_seed_gives_the_same_retries(run: Runner) -> None:
    program = """
        program main():
            "Digits:"
            x = gen(int in 0..99, temperature=3)
            require x > 0 else retry 64
            return x
        """
    assert run(program, seed=5) == run(program, seed=5)
    assert len({run(program, seed=seed) for seed in range(16)}) > 1


def test_a_count_of_retries_that_makes_no_sense_is_refused(run: Runner) -> None:
    program = """
        program main(n: int):
            x = gen(int in 0..9, temperature=3)
            require x > 20 else retry n
            return x
        """
    assert "from 0 to 64" in fault(run, program, n=65).message
    assert "from 0 to 64" in fault(run, program, n=-1).message
    assert "after 2 retries" in fault(run, program, n=2).message


def test_variables_are_what_they_were_at_the_checkpoint(run: Runner) -> None:
    seen = Seen()
    outcome = run.outcome(
        """
        program main() -> int:
            "A digit:"
            tries = 0
            x = gen(int in 0..9, temperature=3)
            tries = tries + 1
            require x == 0 else retry 64
            return tries
        """,
        observer=seen,
    )
    assert seen.withdrawn
    assert outcome.result == 1
