"""How a graph looks: SVG, DOT, JSON and lines.

May import: compiler, syntax, and runtime's tokenizer for counting tokens.
"""
