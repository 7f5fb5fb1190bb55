"""What a variable can hold, and how an expression is worked out: values, static types, the bounded evaluator, JSON to
values and back.

May import: diagnostics, syntax, grammar, grammar.regular.
"""
