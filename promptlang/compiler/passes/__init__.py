"""One file a pass over graphs; `optimise.py` runs them in their order.

May import: compiler, diagnostics, syntax, values, grammar.
"""
