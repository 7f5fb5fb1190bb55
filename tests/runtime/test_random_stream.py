"""Random numbers are a function of place and step."""

from hypothesis import given
from hypothesis import strategies as st

from promptlang.runtime.random_stream import RandomStream


def test_the_same_place_and_step_give_the_same_number() -> None:
    assert RandomStream(7, "row", 3).uniform(5) == RandomStream(7, "row", 3).uniform(5)


def test_asking_out_of_order_changes_nothing() -> None:
    stream = RandomStream(1)
    forward = [stream.uniform(step) for step in range(10)]
    assert [stream.uniform(step) for step in reversed(range(10))] == forward[::-1]


def test_places_that_look_alike_differ() -> None:
    places = [("ab", "c"), ("a", "bc"), ("abc",), (1,), ("1",), (), (1, 1), (11,), ("a", 1), ("a", "1")]
    assert len({RandomStream(0, *place).uniform(0) for place in places}) == len(places)


def test_a_child_is_the_longer_path() -> None:
    assert RandomStream(3, "a").child("b", 2).uniform(9) == RandomStream(3, "a", "b", 2).uniform(9)


@given(st.integers(), st.integers(0, 2**63))
def test_numbers_lie_in_the_unit_interval(seed: int, step: int) -> None:
    assert 0.0 <= RandomStream(seed).uniform(step) < 1.0


def test_numbers_are_spread_evenly() -> None:
    numbers = [RandomStream(0).uniform(step) for step in range(20_000)]
    buckets = [sum(1 for number in numbers if int(number * 10) == bucket) for bucket in range(10)]
    assert all(1850 < count < 2150 for count in buckets)
