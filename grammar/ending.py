"""How a value under way can be brought to a legal end in few tokens."""

import heapq
from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

from promptlang.grammar.constraint import State

Way: TypeAlias = tuple[int, ...]
"""Tokens from one state to another."""

CLOSING = b'"}]'
"""What ends strings, objects and lists: tried before all else."""

ONWARD = 4
"""What a step that closes nothing costs, in steps that do."""

STATES = 60
"""States gone on from; a count and not a time, so that the answer is always the same."""

BROADEST = 32
"""Tokens tried in one state where none of a single byte is legal."""


def shortest_end(state: State, limit: int) -> list[int] | None:
    """Tokens that end the value from here: as few as a cheapest-first search finds that tries to close before it goes
    on (Dijkstra 1959), else those that always taking the first legal step leads to.

    Args:
        state: not changed.
        limit: the most tokens.

    Returns:
        The tokens, none of them needed where the value can end already; None where no end was found.
    """
    if state.can_end():
        return []
    return _cheapest(state, limit) or _first(state, limit)


def _cheapest(state: State, limit: int) -> list[int] | None:
    order = count()
    waiting: list[tuple[int, int, State, Way, bool]] = [(0, next(order), state, (), False)]
    for _ in range(STATES):
        if not waiting:
            return None
        cost, _, here, tokens, is_closed = heapq.heappop(waiting)
        if not is_closed and here.can_end():
            return list(tokens)
        closing, others = _steps(here)
        for step, reached in _distinct(here, others if is_closed else closing):
            if len(tokens) + len(step) <= limit:
                further = cost if is_closed else cost + len(step)
                heapq.heappush(waiting, (further, next(order), reached, tokens + step, False))
        if others and not is_closed:
            heapq.heappush(waiting, (cost + ONWARD, next(order), here, tokens, True))
    return None


def _first(state: State, limit: int) -> list[int] | None:
    tokens: list[int] = []
    while not state.can_end():
        closing, others = _steps(state)
        step = next(iter(closing + others), None)
        if step is None or len(tokens) + len(step) > limit:
            return None
        tokens += step
        state = _after(state, step)
    return tokens


def _distinct(state: State, steps: list[Way]) -> Iterator[tuple[Way, State]]:
    """The steps and where they lead, without those after which all is as after another: most letters of a word are
    like any other."""
    seen = set()
    for step in steps:
        reached = _after(state, step)
        likeness = (reached.can_end(), reached.mask().tobytes())
        if likeness not in seen:
            seen.add(likeness)
            yield step, reached


def _after(state: State, tokens: Way) -> State:
    reached = state.fork()
    for token in tokens:
        reached.advance(token)
    return reached


def _steps(state: State) -> tuple[list[Way], list[Way]]:
    """The ways on from a state, by single bytes: those that close something, or are forced, and the others."""
    forced = state.forced()
    if forced:
        return [tuple(forced)], []
    vocabulary, mask = state.vocabulary, state.mask()
    singles = vocabulary.single_bytes
    legal = singles[(mask[singles >> 5] >> (singles & 31) & 1).astype(bool)].tolist()
    closing: list[Way] = [(token,) for token in legal if vocabulary.token_bytes[token] in CLOSING]
    others: list[Way] = [(token,) for token in legal or vocabulary.tokens_of(mask)[:BROADEST]]
    return closing, [step for step in others if step not in closing]
