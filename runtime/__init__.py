"""The engine: requests in, answers out, one model pass a step; start at `engine.py`.

May import: its rooms (`cache/`, `models/`, `text/`), kernels, grammar.
"""
