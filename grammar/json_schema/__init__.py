"""JSON Schema, whose keywords are said in those that can be enforced; start at `schema.py`.

May import: grammar's errors and limits.
"""
