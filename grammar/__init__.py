"""Which text is legal: the language's own grammar (`language/`), and constraints on answers: what a value may look like
(`shapes.py`), which engine serves it (`compiler.py`), and how its text is read back (`reader.py`).

May import: grammar.engines, grammar.json_schema, grammar.regular.
"""
