"""The engines behind the one interface of `grammar/constraint.py`: a trie of texts, tables of masks, parsers.

May import: grammar's constraint, vocabulary, errors, limits and regular.
"""
