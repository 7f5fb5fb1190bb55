"""Beam search, on the tiny random model."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from program_runner import Runner, fault

from promptlang.interpreter.observer import SilentObserver

SEARCH = """
program main(depth: int = 3, width: int = 2, branch: int = 3):
    "Digits of a number:"
    history = []
    beam depth=depth width=width branch=branch by x as paths:
        " and"
        x = gen(int in 0..9, temperature=3)
        history = history + [x]
        log [history, x]
    return [[path.history, path.score, path.index, path.text, path.logprob] for path in paths]
"""


@dataclass
class Seen(SilentObserver):
    """Takes down what is logged, and which branches are pruned."""

    logs: dict[tuple[str, ...], str] = field(default_factory=dict)
    lost: list[tuple[str, ...]] = field(default_factory=list)

    def log(self, path: tuple[str, ...], text: str) -> None:
        self.logs[path] = text

    def pruned(self, path: tuple[str, ...]) -> None:
        self.lost.append(path)

    def history(self, label: str) -> list[int]:
        numbers = self.logs[(label,)].partition("]")[0].strip("[")
        return [int(number) for number in numbers.split(",")]


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.mark.slow
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 100))
def test_a_beam_is_beam_search(run: Runner, depth: int, width: int, branch: int, seed: int) -> None:
    seen = Seen()
    paths = run.outcome(SEARCH, seed=seed, observer=seen, depth=depth, width=width, branch=branch).result
    frontier: list[list[int]] = [[]]
    for number in range(depth):
        labels = [f"paths[{number}][{index}]" for index in range(len(frontier) * branch)]
        histories = [seen.history(label) for label in labels]
        assert [history[:-1] for history in histories] == [parent for parent in frontier for _ in range(branch)]
        ranked = sorted(range(len(labels)), key=lambda index: (-histories[index][-1], index))
        kept = ranked[:width]
        assert {path for (path,) in seen.lost if path.startswith(f"paths[{number}]")} == {
            labels[index] for index in ranked[width:]
        }
        frontier = [histories[index] for index in sorted(kept)]
        best = [histories[index] for index in kept]
    assert [path[0] for path in paths] == best
    assert [path[1] for path in paths] == [history[-1] for history in best]
    assert [path[2] for path in paths] == list(range(len(best)))


def test_a_paths_text_and_log_probability_are_those_of_all_its_rounds(run: Runner) -> None:
    for history, _, _, text, logprob in run(SEARCH):
        assert text == "".join(f" and{x}" for x in history)
        assert logprob < 0
    [[*_, first]] = run(SEARCH, depth=1, width=1, branch=1)
    [[*_, whole]] = run(SEARCH, depth=4, width=1, branch=1)
    assert whole < first


def test_branches_of_one_path_differ(run: Runner) -> None:
    histories = run("""
        program main():
            "Words:"
            beam depth=2 width=9 branch=3 by 0 as paths:
                x = gen(max_tokens=6, temperature=2)
                kept = x
            return [path.text for path in paths]
        """)
    assert len(set(histories)) == 9


def test_a_round_goes_through_the_model_in_one_batch(run: Runner) -> None:
    one = run.outcome(SEARCH, depth=2, width=1, branch=1).usage.forwards
    many = run.outcome(SEARCH, depth=2, width=4, branch=4).usage.forwards
    assert many <= one + 2  # branches wait a step for the first of them to compute what they share


def test_paths_share_what_they_have_in_common(run: Runner) -> None:
    usage = run.outcome(SEARCH, depth=4, width=3, branch=3).usage
    assert usage.computed_tokens <= usage.optimal_tokens + usage.calls


def test_a_run_goes_on_from_the_best_path(run: Runner) -> None:
    before, text, after, x = run("""
        program main():
            "Digits:"
            beam depth=2 width=2 branch=2 by x as paths:
                x = gen(int in 0..9, temperature=3)
            fork 1 as b:
                adopt paths[0]
                " then "
                y = gen(max_tokens=3)
            adopt paths[0]
            return [paths[0].x, paths[0].text, b[0].text, x]
        """)
    assert after.startswith(text + " then ")
    assert x == before


def test_after_a_beam_the_prompt_is_what_it_was(run: Runner) -> None:
    first, second = run("""
        program main():
            "The quick brown fox"
            x = score(" jumps")
            beam depth=2 width=2 branch=2 by y as paths:
                y = gen(int in 0..9, temperature=3)
            z = score(" jumps")
            return [x, z if paths else 0]
        """)
    assert first == pytest.approx(second, abs=1e-4)


def test_beams_and_forks_nest(run: Runner) -> None:
    counts = run("""
        program main():
            "Start:"
            fork 2 as outer:
                beam depth=2 width=2 branch=2 by x as paths:
                    fork 2 as inner:
                        y = gen(int in 0..9, temperature=3)
                        keep 1 by y
                    x = inner[0].y
                adopt paths[0]
                total = x
            return [len(branch.paths) for branch in outer] + [branch.x == branch.total for branch in outer]
        """)
    assert counts == [2, 2, True, True]


def test_a_call_in_a_beam_is_waited_for(run: Runner) -> None:
    scores = run("""
        program main():
            "Start:"
            beam depth=2 width=1 branch=2 by mark as paths:
                x = gen(int in 0..9, temperature=3)
                mark = rate(x)
            return [paths[0].score, paths[0].mark]

        program rate(x: int) -> int:
            "Rate ${x}:"
            y = gen(int in 0..9, temperature=1)
            return y
        """)
    assert scores[0] == scores[1]


def test_a_fault_names_the_round_and_the_branch(run: Runner) -> None:
    error = fault(
        run,
        """
        program main(zero: int):
            rounds = 0
            beam depth=3 width=2 branch=2 by 1 / (2 - rounds - zero) as paths:
                rounds = rounds + 1
                x = gen(max_tokens=2, temperature=1)
            return paths[0].x
        """,
        zero=0,
    )
    assert error.path == ("paths[1][0]",)
    assert error.span.text == "1 / (2 - rounds - zero)"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"depth": 0}, "at least 1"),
        ({"width": -1}, "at least 1"),
        ({"depth": 100, "width": 100, "branch": 1}, "at most 4096"),
    ],
)
def test_a_size_that_makes_no_sense_is_refused(run: Runner, arguments: dict[str, int], words: str) -> None:
    assert words in fault(run, SEARCH, **arguments).message


def test_a_beam_ranks_by_numbers(run: Runner) -> None:
    error = fault(
        run,
        """
        program main(by: json):
            beam depth=1 width=1 branch=1 by by as paths:
                x = gen(max_tokens=2, temperature=1)
            return paths[0].x
        """,
        by="much",
    )
    assert "number" in error.message
    assert error.path == ("paths[0][0]",)


def test_branches_of_equal_paths_differ(run: Runner) -> None:
    texts = run("""
        program main():
            "Words:"
            rounds = 0
            beam depth=2 width=16 branch=4 by 0 as paths:
                if rounds > 0:
                    gen(max_tokens=6, temperature=2)
                " and"
                rounds = rounds + 1
            return [path.text for path in paths]
        """)
    assert len(set(texts)) == 16


def test_a_beam_of_single_branches_needs_nothing_drawn_at_random(run: Runner) -> None:
    run.interpreter("""
        program main():
            "Digits:"
            beam depth=3 width=1 branch=1 by x as paths:
                x = gen(int in 0..9)
            return paths[0].x
        """)
    assert run.diagnostics == []
