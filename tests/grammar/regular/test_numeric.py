"""Ranges of numbers are exact."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.reader import read
from promptlang.grammar.regular import numeric
from promptlang.grammar.regular.regex import to_text
from promptlang.grammar.shapes import Float, Int

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


@pytest.mark.parametrize("text", ["007", "-0", "00", "+1", "1.0", "", "-", "1e3", "٣"])
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


@pytest.mark.parametrize("text", ["01", ".5", "1.", "e5", "1e", "1e1.5", "1e999", "--1", "", "0." + "1" * 16])
def test_a_decimal_has_neither_bare_parts_nor_too_large_ones(text: str) -> None:
    assert not re.fullmatch(to_text(numeric.decimal(None, None)), text)
    assert not re.fullmatch(to_text(numeric.decimal(0, 1)), text)


@pytest.mark.parametrize("text", ["1e5", "-1.5E+10", "1e-05", "6.022e23", "9" * 18 + "e290", "0e0", "1e-400"])
def test_a_float_without_bounds_may_have_an_exponent(text: str) -> None:
    assert re.fullmatch(to_text(numeric.decimal(None, None)), text)
    assert isinstance(read(Float(), text), float)
    assert not re.fullmatch(to_text(numeric.decimal(0, None)), text)


@pytest.mark.parametrize("text", ["9" * 19, "-" + "1" * 200, "1" + "0" * 40])
def test_an_int_without_bounds_has_any_number_of_digits(text: str) -> None:
    assert re.fullmatch(to_text(numeric.integer(None, None)), text)
    assert read(Int(), text) == int(text)
    assert not re.fullmatch(to_text(numeric.integer(-5, 5)), text)


@pytest.mark.parametrize("low", [0, 1, 7, 10, 99, 100, 345])
def test_an_int_from_a_bound_on_is_at_least_that(low: int) -> None:
    regex = re.compile(to_text(numeric.integer(low, None)))
    assert [number for number in range(1100) if regex.fullmatch(str(number))] == list(range(low, 1100))


def test_an_empty_range_is_an_error() -> None:
    with pytest.raises(ConstraintError, match=r"5\.\.1"):
        numeric.integer(5, 1)
    with pytest.raises(ConstraintError, match=r"0\.5\.\.0\.25"):
        numeric.decimal(0.5, 0.25)


def test_a_bound_with_too_many_digits_is_an_error() -> None:
    with pytest.raises(ConstraintError, match="1e-20"):
        numeric.decimal(1e-20, 1)
