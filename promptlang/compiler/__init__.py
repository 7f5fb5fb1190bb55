"""What a program does, as a graph, and the same for less work: `lower.py` makes graphs, `passes/` change them.

May import: diagnostics, syntax, values, checker, grammar.
"""
