"""mypy as a user runs it on a file of theirs."""

import re
import subprocess
import sys
from pathlib import Path

from places import ROOT


def strictly_checked(file: Path, folder: Path) -> list[str]:
    """What `mypy --strict` finds in a file, as `line: message`.

    Args:
        file: the user's.
        folder: for links to the package, as it would be installed: mypy does not follow an editable install's mapping.
    """
    package = folder / "installed" / "promptlang"
    if not package.exists():
        package.mkdir(parents=True)
        for entry in (ROOT / "promptlang").iterdir():
            (package / entry.name).symlink_to(entry)
        for name in ("grammar", "runtime", "kernels"):
            (package / name).symlink_to(ROOT / name)
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent", str(file)],
        capture_output=True,
        text=True,
        cwd=folder,
        env={"MYPYPATH": f"{folder / 'installed'}:{folder}", "PATH": ""},
    )
    assert not checked.stderr, checked.stderr
    found = re.compile(re.escape(file.name) + r":(\d+): error: (.*)")
    return [f"{match[1]}: {match[2]}" for line in checked.stdout.splitlines() if (match := found.search(line))]
