"""The engines behind the one interface of `grammar/constraint.py`: a trie of texts, a parser, and over the parser one
that follows what is written, so that no item of an array comes twice.

May import: grammar.
"""
