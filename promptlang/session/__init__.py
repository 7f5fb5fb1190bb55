"""Programs in, outcomes out, for every door: `program.py` is what stands before a model, `session.py` owns the model.

May import: everything but doors. Importing it loads no model library; `Session.open` does.
"""
