"""JSON Schema, whose keywords are said in those that can be enforced; start at `schema.py`. `instances.py` holds data
against a schema.

May import: grammar.
"""
