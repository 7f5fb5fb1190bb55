"""One layout for every program, source text to source text; start at `layout.py`.

May import: syntax, diagnostics.
"""
