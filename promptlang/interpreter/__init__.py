"""How a graph runs: coroutines, branches, model calls, host functions; start at `interpreter.py`, at `run.py` for
what a run consists of, and at `loop.py` for what moves it.

May import: compiler, values, syntax, diagnostics, runtime, grammar.
"""
