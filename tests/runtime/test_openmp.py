"""Threads that wait give up their core soon, unless the user says how they wait."""

import os
import sys

import pytest

from promptlang.runtime.openmp import SPINS, spin_briefly


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")


def spins(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str | None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    spin_briefly()
    return os.environ.get("GOMP_SPINCOUNT")


def test_they_spin_briefly(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spins(monkeypatch) == SPINS


def test_the_users_word_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spins(monkeypatch, GOMP_SPINCOUNT="7") == "7"


def test_a_policy_of_the_users_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spins(monkeypatch, OMP_WAIT_POLICY="active") is None


@pytest.mark.parametrize("system", ["darwin", "win32"])
def test_where_openmp_is_not_gnus_nothing_is_set(monkeypatch: pytest.MonkeyPatch, system: str) -> None:
    monkeypatch.setattr(sys, "platform", system)
    assert spins(monkeypatch) is None
