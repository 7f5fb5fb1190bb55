"""What a program's text says: text to AST, files and what they import, and the one layout (`formatter/`).

May import: diagnostics.
"""
