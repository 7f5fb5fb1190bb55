"""How the process of a command ends."""

import atexit
import os
import sys
from contextlib import suppress
from typing import NoReturn


def end_at_once(code: int) -> NoReturn:
    """End this process as Python would, but for taking apart all that it holds, which may take a second where a model
    was loaded. Threads that aren't daemons are waited for, and what was to be done at exit is done.

    For a process whose code is all ours: files that others left open would lose what they did not flush.

    Args:
        code: the process's exit code.
    """
    atexit.register(_leave, code)  # as the last one, so that it is called first, when threads have ended
    sys.exit(code)


def _leave(code: int) -> None:
    atexit.unregister(_leave)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):  # closed, or its reader has gone: where that matters, it was said
            stream.flush()
    os._exit(code)
