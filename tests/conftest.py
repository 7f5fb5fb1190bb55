"""Fixtures for all tests."""

import gc
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from promptlang.runtime.openmp import spin_briefly

if "PYTEST_XDIST_WORKER" in os.environ:
    # Every core has its process; must stand before torch is imported.
    os.environ["OMP_NUM_THREADS"] = "1"
spin_briefly()
# Kernels run without a device; Triton reads this as it is imported.
os.environ["TRITON_INTERPRET"] = "1"
# A shell that runs the tests in the background has them ignore interrupts, and every command that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)

# `make test-fast` runs with this one; whatever asks for more than the usual number of examples asks for a multiple.
settings.register_profile("fast", max_examples=10, deadline=None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests begin first, so that no process is left with one when the others have ended."""
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end, so that garbage is not looked for among it."""
    gc.freeze()


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """Writes a program's text to a file; gives its path."""

    def write(text: str) -> str:
        file = tmp_path / "program.pl"
        file.write_text(text, encoding="utf-8")
        return str(file)

    return write
