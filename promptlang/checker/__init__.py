"""What is wrong with a program, before anything runs: a loaded bundle to diagnostics and tables; start at `check.py`.

May import: diagnostics, syntax, values, grammar, grammar.regular.
"""
