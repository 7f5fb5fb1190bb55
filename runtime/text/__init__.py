"""Text to tokens and back: tokenizer, chat templates, stop strings.

May import: nothing outside this folder.
"""
