"""What is remembered of prompts, where its keys and values lie, and what goes first for room.

May import: nothing outside this folder but numpy and torch.
"""
