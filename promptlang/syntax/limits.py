"""Limits of a run that the checker knows, too."""

MOST_BRANCHES = 4096
"""Branches of one fork, and of all rounds of one beam."""

MOST_RETRIES = 64
"""How often one `require` tries again."""
