"""Notebooks: `cells.py` runs cells that are programs.

May import: api.
"""
