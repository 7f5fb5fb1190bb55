"""Programs in, outcomes out, for every door: `program.py` is what stands before a model, `session.py` owns the model.

May import: interpreter, lints, compiler, compiler.passes, checker, values, syntax, diagnostics, runtime,
runtime.models, grammar.
"""
