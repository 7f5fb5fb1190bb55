"""How large the table of a regular expression would be, told before anything is built.

The positions of an expression and what may follow each (Glushkov 1961) give an automaton whose subsets are counted up
to a limit.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from promptlang.grammar.regular.regex import Alternation, Characters, Concatenation, Regex, Repetition, size

WIDE = 5
"""What a state that goes on with any character costs, in states that go on with ASCII alone: a character beyond ASCII
takes up to three more states, and far more tokens."""


def table_cost(regex: Regex, limit: int) -> int | None:
    """The states of the deterministic automaton, weighted by what they cost; None where that exceeds `limit`."""
    if size(regex) > limit:
        return None
    positions = _Positions()
    whole = positions.add(regex)
    start = frozenset(whole.first)
    seen, waiting, cost = {start}, [start], 0
    while waiting:
        state = waiting.pop()
        cost += WIDE if any(positions.is_wide(position) for position in state) else 1
        if cost > limit:
            return None
        for target in positions.successors(state):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return cost


def can_begin_with(regex: Regex, characters: Characters) -> bool:
    """Whether a text of the expression is empty or begins with one of these characters."""
    positions = _Positions()
    whole = positions.add(regex)
    return whole.is_nullable or any(
        positions.sets[position].minus(characters) != positions.sets[position] for position in whole.first
    )


@dataclass(frozen=True)
class _Span:
    """What a part of an expression begins and ends with, and whether it can be empty."""

    first: frozenset[int]
    last: frozenset[int]
    is_nullable: bool


NOTHING = _Span(frozenset(), frozenset(), True)


@dataclass
class _Positions:
    """The sets of characters of an expression, and which positions may follow which."""

    sets: list[Characters] = field(default_factory=list)
    follow: list[set[int]] = field(default_factory=list)

    def add(self, regex: Regex) -> _Span:
        match regex:
            case Characters():
                return self._position(regex)
            case Concatenation(parts=parts):
                span = NOTHING
                for part in parts:
                    span = self._join(span, self.add(part))
                return span
            case Alternation(options=options):
                spans = [self.add(option) for option in options]
                return _Span(
                    frozenset().union(*(span.first for span in spans)),
                    frozenset().union(*(span.last for span in spans)),
                    any(span.is_nullable for span in spans),
                )
            case Repetition():
                return self._repetition(regex)

    def _position(self, characters: Characters) -> _Span:
        self.sets.append(characters)
        self.follow.append(set())
        only = frozenset([len(self.sets) - 1])
        return _Span(only, only, False)

    def _join(self, left: _Span, right: _Span) -> _Span:
        for position in left.last:
            self.follow[position] |= right.first
        return _Span(
            left.first | right.first if left.is_nullable else left.first,
            left.last | right.last if right.is_nullable else right.last,
            left.is_nullable and right.is_nullable,
        )

    def _repetition(self, repetition: Repetition) -> _Span:
        span = NOTHING
        for _ in range(repetition.low):
            span = self._join(span, self.add(repetition.item))
        if repetition.high is None:
            return self._join(span, self._star(repetition.item))
        rest = NOTHING
        for _ in range(repetition.high - repetition.low):
            inner = self._join(self.add(repetition.item), rest)
            rest = _Span(inner.first, inner.last, True)
        return self._join(span, rest)

    def _star(self, item: Regex) -> _Span:
        span = self.add(item)
        self._join(span, span)
        return _Span(span.first, span.last, True)

    def is_wide(self, position: int) -> bool:
        """Whether characters beyond ASCII may stand at a position."""
        ranges = self.sets[position].ranges
        return bool(ranges) and ranges[-1][1] > 0x7F

    def successors(self, state: frozenset[int]) -> Iterator[frozenset[int]]:
        """The states one character on. `state` holds the positions that may come next."""
        starts = {low for position in state for low, _ in self.sets[position].ranges}
        ends = {high + 1 for position in state for _, high in self.sets[position].ranges}
        for character in starts | ends:
            taken = [position for position in state if character in self.sets[position]]
            if taken:
                yield frozenset().union(*(self.follow[position] for position in taken))
