"""Options of `select` in Python."""

import enum
from collections.abc import Iterable
from typing import Any

import pytest

from promptlang.api.errors import OptionsError
from promptlang.api.options import options_of


class Team(enum.Enum):
    BILLING = "the billing team"
    NETWORK = 2


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        (["a", "b"], ("a", "b")),
        ((1, 2.5, True, None), ("1", "2.5", "true", "none")),
        (Team, ("the billing team", "NETWORK")),
        ([Team.NETWORK, "other"], ("NETWORK", "other")),
        (iter(["a"]), ("a",)),
    ],
)
def test_texts(options: Iterable[Any], texts: tuple[str, ...]) -> None:
    assert options_of(options).texts == texts


def test_what_is_chosen_keeps_its_type() -> None:
    assert options_of([1, 2]).chosen("2") == 2
    assert options_of(Team).chosen("NETWORK") is Team.NETWORK


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ([], "at least one"),
        ("abc", "needs a list"),
        (["a", ""], "empty"),
        (["a", "b", "a"], "'a' twice"),
        ([1, "1"], "'1' twice"),
        ([["a"]], "not \\['a'\\]"),
    ],
)
def test_wrong_options(options: Iterable[Any], told: str) -> None:
    with pytest.raises(OptionsError, match=told):
        options_of(options)
