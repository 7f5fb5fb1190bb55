"""Where things lie in the repository."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
HELPERS = ROOT / "tests" / "helpers"
PROGRAMS = ROOT / "tests" / "programs"
EXAMPLES = ROOT / "examples"
DOCS = ROOT / "docs"
