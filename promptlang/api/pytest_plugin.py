"""The pytest plugin: a fixture for scripted answers."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from promptlang.api.testing import Answers


@pytest.fixture
def pl_answers() -> "Iterator[Answers]":
    """Have a script answer for the default engine until the test ends: `script = pl_answers(["billing", "4"])`.

    An answer that was not asked for fails the test; see `promptlang.testing.answers`.
    """
    from promptlang.api.testing import answers  # only where it is used: pytest loads this file in every project

    with ExitStack() as scripts:
        yield lambda script: scripts.enter_context(answers(script))
