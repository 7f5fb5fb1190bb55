"""How a graph looks: SVG, DOT, JSON and lines.

May import: compiler, compiler.passes, syntax, diagnostics, runtime.cache, runtime.models.
"""
