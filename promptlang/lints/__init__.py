"""What a program could do better, said as warnings about its graph, so only a program without errors has any.

May import: compiler, values, syntax, diagnostics.
"""
