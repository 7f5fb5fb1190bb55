"""One file a pass over graphs; `optimise.py` runs them in their order.

May import: what the compiler may.
"""
