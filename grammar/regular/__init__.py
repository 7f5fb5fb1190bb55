"""Regular shapes: patterns, numbers, and what becomes of them as expressions and automata.

May import: grammar.
"""
