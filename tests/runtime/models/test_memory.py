"""The memory of a machine, on systems of every kind."""

import os
from pathlib import Path

import pytest

from promptlang.runtime.models.memory import ASSUMED_BYTES, available_memory

NOWHERE = Path("/nowhere/meminfo")


def test_linux_says_what_is_available(tmp_path: Path) -> None:
    file = tmp_path / "meminfo"
    file.write_text("MemTotal:       100 kB\nMemAvailable:       40 kB\nHugePages_Total:       0\n")
    assert available_memory(file) == 40 * 1024


def test_elsewhere_half_of_the_memory_is_taken_for_free(monkeypatch: pytest.MonkeyPatch) -> None:
    figures = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1000}
    monkeypatch.setattr(os, "sysconf", figures.__getitem__)
    assert available_memory(NOWHERE) == 4096 * 500


def test_a_system_that_says_nothing_of_its_memory_is_taken_to_have_little(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> int:
        raise ValueError(f"unrecognized configuration name {name}")

    monkeypatch.setattr(os, "sysconf", unknown)
    assert available_memory(NOWHERE) == ASSUMED_BYTES
    monkeypatch.delattr(os, "sysconf")
    assert available_memory(NOWHERE) == ASSUMED_BYTES
