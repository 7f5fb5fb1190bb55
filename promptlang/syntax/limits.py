"""Limits that the parser, the checker and the interpreter hold a program to."""

MOST_NESTING = 100
"""How many statements, expressions and types, or brackets, stand inside each other; how many statements do with a
program's fragments in place, and what a `require` does again inside it."""

MOST_STATEMENTS = 10_000
"""Statements of one program, with its fragments in place."""

MOST_BRANCHES = 4096
"""Branches of one fork, and of all rounds of one beam."""

MOST_RETRIES = 64
"""How often one `require` tries again."""

MOST_BRANCHES_ALIVE = 16_384
"""Branches of one run that have not ended, those of forks in branches and in called programs too."""

MOST_CALLS = 20_000
"""Calls of programs in one run."""
