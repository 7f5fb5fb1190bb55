"""Garbage is not looked for among what a command brings in as it starts."""

import subprocess
import sys


def collections(begin: str) -> int:
    """How often Python looks for garbage while a new process imports the checker."""
    code = (
        "import gc\nfrom promptlang.cli import garbage\nlooked = []\n"
        "gc.callbacks.append(lambda phase, info: looked.append(phase))\n"
        f"{begin}\nimport promptlang.checker.check\nprint(looked.count('start'))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_a_start_is_over_before_garbage_is_looked_for() -> None:
    assert collections("garbage.put_off()") == 0
    assert collections("garbage.put_off()\ngarbage.look_from_now_on()") > 0
