"""Text to tokens and back: tokenizer, chat templates, stop strings.

May import: grammar.
"""
