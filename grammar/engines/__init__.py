"""The engines behind the one interface of `grammar/constraint.py`: a trie of texts, and a parser.

May import: grammar.
"""
