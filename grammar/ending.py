"""How a value under way can be brought to a legal end in few tokens."""

import heapq
from collections.abc import Iterator
from itertools import count
from typing import TypeAlias

from promptlang.grammar.constraint import State

Tokens: TypeAlias = tuple[int, ...]

CLOSING = b'"}]'
"""What ends strings, objects and lists: tried before all else."""

ONWARD = 4
"""What a step that closes nothing costs, in steps that do."""

TRIES = 300
"""States looked at; a count and not a time, so that the answer is always the same."""

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
    waiting: list[tuple[int, int, State, Tokens, Tokens]] = [
        (cost, next(order), state, (), step) for cost, step in _steps(state)
    ]
    heapq.heapify(waiting)
    for _ in range(TRIES):
        if not waiting:
            return None
        cost, _, parent, taken, step = heapq.heappop(waiting)
        tokens = (*taken, *step)
        if len(tokens) > limit:
            continue
        reached = _after(parent, step)
        if reached.can_end():
            return list(tokens)
        for more, further in _steps(reached):
            heapq.heappush(waiting, (cost + more, next(order), reached, tokens, further))
    return None


def _first(state: State, limit: int) -> list[int] | None:
    tokens: list[int] = []
    while not state.can_end():
        steps = sorted(_steps(state))
        if not steps or len(tokens) + len(steps[0][1]) > limit:
            return None
        tokens += steps[0][1]
        state = _after(state, steps[0][1])
    return tokens


def _after(state: State, tokens: Tokens) -> State:
    reached = state.fork()
    for token in tokens:
        reached.advance(token)
    return reached


def _steps(state: State) -> Iterator[tuple[int, Tokens]]:
    """The ways on from a state, each with its cost: what is forced, else single bytes."""
    forced = state.forced()
    if forced:
        yield len(forced), tuple(forced)
        return
    vocabulary, mask = state.vocabulary, state.mask()
    singles = vocabulary.single_bytes
    legal = singles[(mask[singles >> 5] >> (singles & 31) & 1).astype(bool)].tolist()
    for token in legal or vocabulary.tokens_of(mask)[:BROADEST]:
        yield 1 if vocabulary.token_bytes[token] in CLOSING else ONWARD, (token,)
