"""The line that ends a run says what is true, however early the run ended."""

from promptlang.cli.report import numbers
from promptlang.runtime.usage import Usage


def test_a_run_that_ends_before_its_first_pass_takes_nothing_from_the_cache() -> None:
    usage = Usage()
    usage.ask([1, 2, 3])
    line = numbers(usage, 1.5)
    assert "3 prompt tokens asked for" in line
    assert "%" not in line


def test_a_run_that_asked_nothing_says_so() -> None:
    line = numbers(Usage(), 1.5)
    assert line.startswith("the model was not asked")
    assert "%" not in line


def test_tokens_that_a_constraint_forced_are_told_without_a_pass() -> None:
    assert "0 generated and 5 forced" in numbers(Usage(forced_tokens=5), 1.5)


def test_what_was_computed_was_not_in_the_cache() -> None:
    usage = Usage(computed_tokens=1, forwards=1)
    usage.ask([1, 2, 3, 4])
    assert "75 % from the cache" in numbers(usage, 1.5)


def test_what_max_tokens_and_types_ended_is_told() -> None:
    line = numbers(Usage(cut_answers=2, overruled_answers=1), 1.5)
    assert "2 answers cut" in line
    assert "1 answer ended by the type" in line
    assert "ended" not in numbers(Usage(), 1.5)
