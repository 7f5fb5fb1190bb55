"""The command line, one file a command; start at `app.py`. None loads torch: what needs a model asks a session.

May import: everything.
"""
