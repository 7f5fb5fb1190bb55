"""The Python door on the tiny random model."""

from collections.abc import Iterator

import pytest
from tiny_command import load_tiny

import promptlang as pl
import promptlang.session.opening as opening


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[pl.Engine]:
    """The default engine; the tiny model answers for every name."""
    monkeypatch.setattr(opening, "load", lambda name, **_: load_tiny(name))
    with pl.Engine() as engine:
        pl.set_default_engine(engine)
        yield engine
    pl.set_default_engine(None)
