"""Attention over a tree of prefixes, one file an idea, with a plain reference beside it.

May import: nothing of ours.
"""
