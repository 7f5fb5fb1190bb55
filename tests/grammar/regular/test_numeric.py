"""Ranges of numbers are exact."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.regular import numeric
from promptlang.grammar.regular.regex import to_text

INTEGERS = st.integers(-3000, 3000) | st.integers(-(10**17), 10**17)
DECIMALS = st.decimals(-1000, 1000, places=4).map(float)


@given(st.tuples(INTEGERS, INTEGERS).map(sorted), st.integers(-4000, 4000) | INTEGERS)
def test_an_integer_is_written_if_and_only_if_it_lies_in_the_range(bounds: list[int], number: int) -> None:
    low, high = bounds
    regex = re.compile(to_text(numeric.integer(low, high)))
    for candidate in (number, low, high, low - 1, high + 1):
        assert bool(regex.fullmatch(str(candidate))) == (low <= candidate <= high)


@given(INTEGERS, INTEGERS)
def test_a_missing_bound_leaves_that_side_open(bound: int, number: int) -> None:
    assert bool(re.fullmatch(to_text(numeric.integer(bound, None)), str(number))) == (bound <= number)
    assert bool(re.fullmatch(to_text(numeric.integer(None, bound)), str(number))) == (number <= bound)


@pytest.mark.parametrize("text", ["007", "-0", "00", "+1", "1.0", "", "-", "1e3", "٣", "9" * 19])
def test_an_integer_has_one_way_to_be_written(text: str) -> None:
    assert not re.fullmatch(to_text(numeric.integer(None, None)), text)


@given(st.tuples(DECIMALS, DECIMALS).map(sorted), DECIMALS, st.integers(0, 3))
def test_a_decimal_is_written_if_and_only_if_it_lies_in_the_range(
    bounds: list[float], number: float, zeros: int
) -> None:
    low, high = bounds
    regex = re.compile(to_text(numeric.decimal(low, high)))
    for candidate in (number, low, high, low - 0.0001, high + 0.0001):
        text = f"{Decimal(repr(candidate)):f}" + "0" * zeros
        if Decimal(text) != 0:
            assert bool(regex.fullmatch(text)) == (low <= float(text) <= high)


@given(DECIMALS, DECIMALS)
def test_a_decimal_with_one_bound_is_open_on_the_other_side(bound: float, number: float) -> None:
    text = f"{Decimal(repr(number)):f}"
    assert bool(re.fullmatch(to_text(numeric.decimal(bound, None)), text)) == (bound <= number)
    assert bool(re.fullmatch(to_text(numeric.decimal(None, bound)), text)) == (number <= bound)


@pytest.mark.parametrize("text", ["01", ".5", "1.", "1e5", "--1", "", "0." + "1" * 16])
def test_a_decimal_has_neither_exponent_nor_bare_point(text: str) -> None:
    assert not re.fullmatch(to_text(numeric.decimal(None, None)), text)
    assert not re.fullmatch(to_text(numeric.decimal(0, 1)), text)


def test_an_empty_range_is_an_error() -> None:
    with pytest.raises(ConstraintError, match=r"5\.\.1"):
        numeric.integer(5, 1)
    with pytest.raises(ConstraintError, match=r"0\.5\.\.0\.25"):
        numeric.decimal(0.5, 0.25)


def test_a_bound_with_too_many_digits_is_an_error() -> None:
    with pytest.raises(ConstraintError, match="1e-20"):
        numeric.decimal(1e-20, 1)
