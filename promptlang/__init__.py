"""promptlang: a small language for prompt programs, and the engine that runs them fast.

May import: nothing of ours.
"""

__version__ = "0.1.0"
