"""What the doors, and the room behind them, may import of each other."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter

from places import ROOT

ROOMS = ("cli", "session")
OPENING = "promptlang.session.opening"


def modules() -> dict[str, set[str]]:
    """What each module of the rooms imports, at its top or later."""
    files = {
        f"promptlang.{room}.{file.stem}": file for room in ROOMS for file in (ROOT / "promptlang" / room).glob("*.py")
    }
    return {
        name: {
            node.module
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.ImportFrom) and node.module is not None
        }
        for name, file in files.items()
    }


def test_no_files_import_each_other_in_a_circle() -> None:
    found = modules()
    TopologicalSorter({name: imported & found.keys() for name, imported in found.items()}).prepare()


def test_the_session_knows_no_door() -> None:
    for name, imported in modules().items():
        if name.startswith("promptlang.session"):
            assert not [other for other in imported if other.startswith("promptlang.cli")]


def test_only_opening_loads_torch() -> None:
    light = [name for name in modules() if name != OPENING and not name.endswith("__init__")]
    code = "import sys\n" + "".join(f"import {name}\n" for name in light) + "assert 'torch' not in sys.modules\n"
    subprocess.run([sys.executable, "-c", code], check=True)
