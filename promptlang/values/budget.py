"""What one evaluation may use: steps, and room for what it makes."""

from collections.abc import Iterable
from dataclasses import dataclass

from promptlang.values.builtins import Work
from promptlang.values.values import Parts, Value, render_text

MOST_DEPTH = 100
ITEM_SIZE = 16
COPIED_PER_STEP = 100
"""Items that are copied in the time of a step."""

COMPARED_PER_STEP = 1000
"""Characters that are compared in the time of a step; an item counts as 16."""


@dataclass(frozen=True)
class Limits:
    """What one evaluation may use.

    Attributes:
        steps: operations.
        size: characters made; an item of a list or dict counts as 16.
    """

    steps: int = 200_000
    size: int = 16_000_000


DEFAULT_LIMITS = Limits()


class Refused(Exception):
    """Why an operation has no result; whoever evaluates gives it its place."""


class Budget(Work):
    """What is left of some limits."""

    def __init__(self, limits: Limits) -> None:
        self._steps = limits.steps
        self._size = limits.size

    def refuse(self, message: str) -> Exception:
        return Refused(message)

    def step(self, count: int = 1) -> None:
        self._steps -= count
        if self._steps < 0:
            raise Refused("this takes too many steps")

    def make(self, size: int) -> None:
        self._size -= size
        if self._size < 0:
            raise Refused("the result is too large")

    def make_items(self, count: int) -> None:
        self.make(ITEM_SIZE * count)

    def measure(self, value: Value, depth: int = 0) -> None:
        """Take the size of a whole value out of the budget; refuse one that nests too deeply."""
        if depth > MOST_DEPTH:
            raise Refused(f"the value nests deeper than {MOST_DEPTH} levels")
        self.make(ITEM_SIZE + (len(value) if isinstance(value, str) else 0))
        for item in _inside(value):
            self.measure(item, depth + 1)

    def compare(self, value: Value, times: int = 1) -> None:
        """Use up what it takes to compare a whole value that often: with equals it takes longest."""
        before = self._size
        self.measure(value)
        self.step(times * (1 + (before - self._size) // COMPARED_PER_STEP))

    def text(self, value: Value) -> str:
        """The text that a value has in a prompt."""
        self.measure(value)
        try:
            return render_text(value)
        except TypeError as error:
            raise Refused(str(error)) from None


def _inside(value: Value) -> Iterable[Value]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, Parts):
        return [value.part(name) for name in value.part_names()]
    return ()
