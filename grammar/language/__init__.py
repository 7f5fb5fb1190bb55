"""The grammar of promptlang itself, read by `promptlang/syntax/parser.py`.

May import: nothing of ours.
"""
