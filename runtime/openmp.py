"""How the threads of a step wait for one another.

Importing this does not load torch: what it sets must stand before torch does.
"""

import os
import sys

SPINS = "10000"
"""Longer than the pauses inside a step last.

GNU's OpenMP, which torch has on Linux, spins thirty times as long by default. Where another program wants a core too,
that time is taken from it, and when the next part of the step comes, the thread that spun has used its share up and
waits for the other program. With fewer spins, threads sleep within a step, and each wakes late.
"""


def spin_briefly() -> None:
    """Let threads that wait give up their core soon, unless the user's environment says otherwise.

    Only on Linux: elsewhere torch has another OpenMP, which doesn't read this.
    """
    if sys.platform == "linux" and "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", SPINS)
