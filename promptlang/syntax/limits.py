"""Limits that the parser and the checker hold a program to."""

MOST_NESTING = 100
"""How many statements, expressions and types, or brackets, stand inside each other."""

MOST_BRANCHES = 4096
"""Branches of one fork, and of all rounds of one beam."""

MOST_RETRIES = 64
"""How often one `require` tries again."""
