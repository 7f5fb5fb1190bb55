"""Files as functions."""

import inspect
from pathlib import Path

import pytest

import promptlang as pl

TEXT = """
record Reply:
    team: "billing" | "network"
    urgency: int in 1..5

## Answer.
program main(a: int = 1, b: int, lambda: str = "x") -> Reply:
    "The ${a} ${b} ${lambda}"
    x = gen(int in 1..5)
    return Reply(team="network", urgency=x)

program other(n: int):
    x = gen(max_tokens=n)
    return x
"""


def test_a_file_gives_its_programs_by_name(tmp_path: Path) -> None:
    file = tmp_path / "two.pl"
    file.write_text(TEXT)
    programs = pl.load_all(file)
    assert list(programs) == ["main", "other"]
    assert programs["other"] is programs.other
    with pytest.raises(AttributeError, match="main, other"):
        _ = programs.third
    assert isinstance(programs.other(n=2), str)
    assert pl.load(file).__name__ == "main"


def test_what_a_program_takes_can_be_asked() -> None:
    program = pl.compile(TEXT)
    assert str(inspect.signature(program)) == "(a=1, *, b)"
    assert program.__doc__ == "Answer."
    reply = program(b=2, **{"lambda": "y"})
    assert type(reply) is program.records["Reply"]
    assert isinstance(reply, pl.Record)
    assert reply.to_dict() == {"team": "network", "urgency": reply.urgency}


@pytest.mark.parametrize(
    ("args", "kwargs", "said"),
    [
        ((), {}, "b"),
        ((1, 2, "x", 4), {}, "4"),
        ((1,), {"a": 1, "b": 2}, "twice"),
        ((), {"b": "two"}, "b"),
        ((), {"c": 1}, "c"),
    ],
)
def test_wrong_arguments_are_refused(args: tuple[object, ...], kwargs: dict[str, object], said: str) -> None:
    with pytest.raises(pl.ArgumentsError, match=said):
        pl.compile(TEXT)(*args, **kwargs)


def test_a_file_with_errors_shows_them() -> None:
    with pytest.raises(pl.ProgramError, match="PL1"):
        pl.compile("program main():\n    return nothing\n")


def test_an_option_that_turns_out_to_have_no_meaning_fails_the_run_at_its_place() -> None:
    with pytest.raises(pl.RunError, match="max_tokens") as caught:
        pl.compile("program main(n: int):\n    x = gen(max_tokens=n)\n    return x\n")(n=0)
    assert "<text>:2:5" in caught.value.place


def test_what_it_costs_and_looks_like_is_there_before_it_runs() -> None:
    program = pl.compile(TEXT)
    assert program.check() == []
    assert "gen" in str(program.graph())
    assert "digraph" in program.graph().dot()
