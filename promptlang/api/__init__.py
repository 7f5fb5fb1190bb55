"""The door for Python: annotations as types of answers, records as classes, and what runs programs for a caller.

May import: everything.
"""
