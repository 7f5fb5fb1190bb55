"""What is remembered of prompts, where its keys and values lie, and what goes first for room.

May import: nothing of ours.
"""
