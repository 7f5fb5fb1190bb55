"""Statements that run as they are typed: `known.py` judges them, `conversation.py` runs them, `terminal.py` reads them.

May import: session, interpreter, compiler, checker, values, syntax, diagnostics, runtime, runtime.cache, runtime.text,
grammar.
"""
