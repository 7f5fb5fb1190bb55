"""How tokens lead along the edges of a compressed trie."""

from collections.abc import Iterator
from typing import Protocol, TypeVar

from promptlang.runtime.cache.prefix_cache import TokenIds


class Edge(Protocol):
    """A run of tokens, and what goes on from its end.

    Attributes:
        tokens: int32 [N].
        children: by the first token of their edges.
    """

    tokens: TokenIds

    @property
    def children(self: "AnyEdge") -> "dict[int, AnyEdge]": ...


AnyEdge = TypeVar("AnyEdge", bound=Edge)


def walk(edge: AnyEdge, tokens: TokenIds) -> Iterator[tuple[AnyEdge, int]]:
    """The edges behind `edge` that `tokens` (int32 [N]) lead along, each with how many tokens it has in common with
    them."""
    at = 0
    while at < len(tokens):
        child = edge.children.get(int(tokens[at]))
        if child is None:
            return
        run = child.tokens
        shared = _common_prefix(run, tokens[at : at + len(run)])
        yield child, shared
        if shared < len(run):
            return
        edge, at = child, at + shared


def _common_prefix(run: TokenIds, tokens: TokenIds) -> int:
    """How many first tokens are equal; `tokens` is not empty and no longer than `run`."""
    differs = run[: len(tokens)] != tokens
    first = int(differs.argmax())
    return first if differs[first] else len(tokens)
