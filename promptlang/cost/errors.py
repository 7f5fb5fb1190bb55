"""What can't be estimated."""


class CostError(Exception):
    """A program that can't be rehearsed; `str()` says why."""
