"""What is wrong with a program, before anything runs: a loaded bundle to diagnostics and tables; start at `check.py`.

May import: values, syntax, diagnostics, grammar.
"""
