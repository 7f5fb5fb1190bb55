"""A typed answer is whole, or an error that shows what there was."""

from pathlib import Path

import pytest
from program_runner import Runner, fault


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(tmp_path)


@pytest.mark.parametrize(
    "shape", ["/[a-z]{300}/", "list[int in 0..9, 200..200]", "dict[str, /[a-z]{300}/] | /[a-z]{300}/"]
)
def test_an_answer_that_cannot_end_in_time_is_an_error_that_shows_it(run: Runner, shape: str) -> None:
    caught = fault(
        run,
        f"""
        program main():
            "Say: "
            x = gen({shape}, max_tokens=4, seed=1)
            return x
        """,
    )
    assert "max_tokens" in str(caught)
    assert caught.span.start


@pytest.mark.parametrize("shape", ["list[int in 0..9]", "json", "list[list[bool]]", "/[a-z]{1,300}/"])
@pytest.mark.parametrize("most", [1, 2, 5, 9])
@pytest.mark.parametrize("pretty", ["", ", pretty=true"])
def test_an_answer_that_can_end_soon_is_whole(run: Runner, shape: str, most: int, pretty: str) -> None:
    if pretty and shape.startswith("/"):
        return
    value = run(f"""
        program main():
            "Say: "
            x = gen({shape}, max_tokens={most}, temperature=1.5, seed={most}{pretty})
            return x
        """)
    assert isinstance(value, str | list | dict | int | float | bool | None)


def test_a_pretty_answer_is_laid_out_in_the_prompt_and_has_the_same_value(run: Runner) -> None:
    outcome = run("""
        record Pair:
            left: int in 1..9
            right: list[bool, 1..1]

        program main():
            "Say: "
            fork 1 as b:
                x = gen(Pair, pretty=true)
            return [b[0].text, b[0].x]
        """)
    text, value = outcome
    assert text.startswith('{\n  "left": ')
    assert text.endswith("\n  ]\n}")
    assert set(value) == {"left", "right"}
