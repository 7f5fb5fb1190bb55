"""A run that would never end, or take all memory, is a fault that names its bound."""

from pathlib import Path

import pytest
from scripted_runner import Player

from promptlang.interpreter import forks, programs
from promptlang.interpreter.run import RunError
from promptlang.syntax.limits import MOST_BRANCHES, MOST_BRANCHES_ALIVE, MOST_CALLS


@pytest.fixture
def play(tmp_path: Path) -> Player:
    return Player(tmp_path)


def tree(depth: int) -> str:
    """A program that calls itself twice, so many levels deep."""
    return f"""
        program main(level: int = 0):
            if level < {depth}:
                a = main(level + 1)
                b = main(level + 1)
                return 1
            return 0
        """


@pytest.mark.slow
def test_a_program_that_calls_itself_twice_ends(play: Player) -> None:
    assert play(tree(5), []).result == 1
    with pytest.raises(RunError, match=f"more than {MOST_CALLS} programs"):
        play(tree(60), [])


def test_calls_are_counted_to_the_last(play: Player, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MOST_CALLS", 2**6 - 2)
    assert play(tree(5), []).result == 1
    monkeypatch.setattr(programs, "MOST_CALLS", 2**6 - 3)
    with pytest.raises(RunError, match=f"more than {2**6 - 3} programs"):
        play(tree(5), [])


@pytest.mark.slow
def test_a_fork_of_forks_has_a_bound(play: Player) -> None:
    with pytest.raises(RunError, match=f"more than {MOST_BRANCHES_ALIVE} branches"):
        play(
            f"""
            program main():
                fork {MOST_BRANCHES} as outer:
                    fork {MOST_BRANCHES} as inner:
                        x = 1
                return 1
            """,
            [],
        )


@pytest.mark.parametrize(
    ("body", "most"),
    [
        ("for i in range(5):\n    fork 4 as one:\n        x = 1", 4),
        ("fork 2 as one:\n    fork 3 as two:\n        x = 1", 8),
        ("fork as sides:\n    arm a:\n        x = 1\n    arm b:\n        x = 2", 2),
        ("beam depth=3 width=2 branch=2 by 1 as paths:\n    x = 1", 4),
        ("fork 3 as one:\n    x = other()", 9),
    ],
)
def test_branches_are_counted_while_they_last(
    body: str, most: int, play: Player, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    text = (
        f"program main():\n{lines}\n    return 1\n\nprogram other():\n    fork 2 as one:\n        x = 1\n    return 2\n"
    )
    monkeypatch.setattr(forks, "MOST_BRANCHES_ALIVE", most)
    assert play(text, []).result == 1
    monkeypatch.setattr(forks, "MOST_BRANCHES_ALIVE", most - 1)
    with pytest.raises(RunError, match=f"more than {most - 1} branches"):
        play(text, [])
