"""How a graph runs: coroutines, branches, model calls, host functions; start at `interpreter.py`, and at `run.py` for
what a run consists of.

May import: compiler, values, syntax, diagnostics, grammar, and of runtime what stands before a backend: `backend`,
`requests`, `sampler`, `random_stream`, `usage`.
"""
