"""The command line: `promptlang run`, `check` and `models`."""

from promptlang.cli.app import main

__all__ = ["main"]
