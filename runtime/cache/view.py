"""What is cached, as it is at a moment: the radix tree with texts in place of tokens, to be looked at."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.cache.radix_tree import RadixTree

SHOWN = 60
"""Characters of an edge's text that a line shows."""


@dataclass(frozen=True)
class CachedEdge:
    """Tokens that are cached one behind the other, and what goes on from them.

    Attributes:
        text: of the tokens.
        tokens: how many.
        locks: what computes on them now, or on what goes on from them.
        holders: live prompts that end here.
        children: what goes on from here.
    """

    text: str
    tokens: int
    locks: int
    holders: int
    children: "tuple[CachedEdge, ...]"

    @property
    def is_shared(self) -> bool:
        """Whether more than one continuation has these tokens."""
        return len(self.children) > 1

    @property
    def label(self) -> str:
        """One line: how many tokens, who holds them, and the text."""
        text = self.text if len(self.text) <= SHOWN else f"{self.text[: SHOWN - 1]}…"
        marks = [f"{self.tokens}"]
        marks += [f"locked {self.locks}"] * bool(self.locks) + [f"held {self.holders}"] * bool(self.holders)
        return f"{' · '.join(marks)}  {text!r}"


@dataclass(frozen=True)
class CacheView:
    """The cache of an engine at a moment.

    Attributes:
        slots: tokens that it has room for.
        free: how many of them are free.
        roots: what prompts begin with.
    """

    slots: int
    free: int
    roots: tuple[CachedEdge, ...]

    def __str__(self) -> str:
        head = f"{self.slots - self.free:,} of {self.slots:,} tokens in use"
        return "\n".join([head, *_lines(self.roots)])


def view(tree: RadixTree, spell: Callable[[Sequence[int]], str]) -> CacheView:
    """Look at a tree, while nothing changes it.

    Args:
        tree: of a cache.
        spell: the text of some tokens.
    """
    made: dict[int, CachedEdge] = {}
    order: list[RadixNode] = list(tree.roots.values())
    for node in order:
        order.extend(node.children.values())
    for node in reversed(order):
        children = tuple(made[id(child)] for child in node.children.values())
        tokens = node.tokens.tolist()
        made[id(node)] = CachedEdge(spell(tokens), len(tokens), node.locks, node.holds, children)
    roots = tuple(edge for root in tree.roots.values() for edge in made[id(root)].children)
    return CacheView(tree.allocator.size, tree.allocator.available, roots)


def _lines(edges: Sequence[CachedEdge]) -> list[str]:
    lines: list[str] = []
    waiting = [(edge, 0) for edge in reversed(edges)]
    while waiting:
        edge, depth = waiting.pop()
        lines.append(f"{'  ' * depth}{edge.label}")
        waiting += [(child, depth + 1) for child in reversed(edge.children)]
    return lines
