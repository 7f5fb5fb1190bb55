"""The command line, one file a command; start at `app.py`.

May import: everything.
"""
