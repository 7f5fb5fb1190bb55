"""What programs could do better, said as warnings. They look at graphs, so only a program without errors has any."""

from promptlang.lints.cache import lint

__all__ = ["lint"]
