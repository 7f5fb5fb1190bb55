"""What was right in the public suites of JSON Schemas stays right, and nothing invalid is ever taken."""

import subprocess
import sys

import pytest
from places import ROOT

from promptlang.runtime.models import embedded

DATA = ROOT.parent / "shared" / "data"


@pytest.mark.slow
@pytest.mark.parametrize(
    "folder", ["json-schema-test-suite/tests/draft2020-12", "json-schema-test-suite/tests/draft7", "maskbench"]
)
def test_a_suite_fares_no_worse_than_its_baseline(folder: str) -> None:
    if not (DATA / folder).is_dir():
        pytest.skip(f"needs the suite in {DATA / folder}")
    if embedded.find_gguf() is None:
        pytest.skip(f"needs {embedded.PACKAGE}")
    command = [sys.executable, str(ROOT / "benchmarks" / "constraints.py"), str(DATA / folder), "--limit", "30"]
    outcome = subprocess.run(command, capture_output=True, text=True, check=False)
    assert outcome.returncode == 0, outcome.stderr
