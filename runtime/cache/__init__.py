"""What is remembered of prompts, where its keys and values lie, and what goes first for room.

May import: numpy, torch, and `batch` for the lanes that a sequence gives out.
"""
