"""How much work a constraint may make."""

PARSER_LIMITS = {"initial_lexer_fuel": 2_000_000, "max_lexer_states": 50_000, "max_grammar_size": 200_000}
"""llguidance's limits: enough for every sensible schema, and under 2 s and 200 MiB."""

MOST_SPECIFICATION = 1_000_000
"""Characters of a grammar, or of what a schema comes to: remarks and definitions that nothing leads to don't count."""

MOST_SCHEMA_FILE = 20_000_000
"""Characters of a schema with all that doesn't count: read in half a second."""

MOST_RULES = 1000
"""Rules and tokens of a grammar: llguidance follows them by recursion, and a chain of 3,000 ends the process."""

MOST_PROPERTIES = 2000
"""Properties that one object of a schema names: twice as many take four times as long, 0.3 s at this count."""

MOST_PROPERTIES_IN_ALL = 8000
"""Properties that all objects of a schema name: llguidance panics over about 10,000."""

MOST_SCHEMA_PARTS = 20_000
"""Parts of a schema, and cases that its keywords make when they are rewritten."""

DEEPEST_PART = 60
"""Schemas inside schemas, references followed too."""

DEEPEST_CHAIN = 1000
"""Lists and dicts of a schema inside one another, references followed: llguidance follows them by recursion."""
