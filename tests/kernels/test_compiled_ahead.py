"""The Triton kernels compile for devices that aren't here: without spills, within their shared memory, for their tensor
cores."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="there is no Triton for this system")

COMPILER = Path(__file__).parents[2] / "benchmarks" / "compiled_kernels.py"

SHARED_KIB = {80: 163, 90: 227, 100: 227}
"""Shared memory that one program may have, by compute capability."""


def compiled(*choice: str) -> list[dict[str, object]]:
    """In a process of its own: here, Triton may be told to interpret."""
    result = subprocess.run(
        [sys.executable, COMPILER, "--json", *choice], capture_output=True, text=True, check=False, timeout=600
    )
    assert result.returncode == 0, result.stderr
    rows: list[dict[str, object]] = json.loads(result.stdout)
    return rows


def test_some_shapes_fit_their_device() -> None:
    assert_fit(90, compiled("--architecture", "90", "--few"))


@pytest.mark.slow
@pytest.mark.parametrize("architecture", SHARED_KIB)
def test_every_shape_fits_every_device(architecture: int) -> None:
    assert_fit(architecture, compiled("--architecture", str(architecture)))


def assert_fit(architecture: int, rows: list[dict[str, object]]) -> None:
    assert {row["kernel"] for row in rows} == {"partial_attention", "merge"}
    for row in rows:
        assert row["spilled"] == 0, row
        assert 0 < row["registers"] <= 255, row  # type: ignore[operator]
        assert row["shared"] <= SHARED_KIB[architecture] * 1024, row  # type: ignore[operator]
        if row["kernel"] == "partial_attention" and row["dtype"] != "float32":
            assert row["tensor cores"] != "none", row
