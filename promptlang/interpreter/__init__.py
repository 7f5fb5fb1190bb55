"""How a graph runs: coroutines, branches, model calls, host functions; start at `interpreter.py`, and at `run.py` for
what a run consists of.

May import: compiler, values, syntax, diagnostics, runtime, grammar.
"""
