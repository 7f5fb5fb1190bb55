"""Runs graphs on an engine. Start at `interpreter.py`; `run.py` says what a run consists of."""

from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.machine import Requires
from promptlang.interpreter.observer import Observer, SilentObserver
from promptlang.interpreter.run import Outcome, RunError

__all__ = ["Interpreter", "Observer", "Outcome", "Requires", "RunError", "SilentObserver"]
