"""What a pass is, and what it tells."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from promptlang.compiler.graph import Graph, Node, Region

Graphs: TypeAlias = Mapping[str, Graph]


@dataclass(frozen=True)
class Finding:
    """One thing a pass did.

    Attributes:
        name: the pass.
        node: what it is about, as it was.
        what: what was done and why, in a few words.
        removed: whether the node is no longer in the graph.
        after: id of the node that a removed one stood behind; None where it stood first.
        around: id of the node that a removed one stood in; None at the top of the program.
    """

    name: str
    node: Node
    what: str
    removed: bool = False
    after: int | None = None
    around: int | None = None


@dataclass(frozen=True)
class Passed:
    """A graph, and what was done to it."""

    graph: Graph
    findings: tuple[Finding, ...] = ()


Pass: TypeAlias = Callable[[Graph, Graphs], Passed]
"""Takes a program and all programs of its bundle; changes nothing that is given."""


def removal(name: str, node: Node, what: str, graph: Graph) -> Finding:
    """A finding that a node of this graph goes."""
    after, around = _place(node.id, graph.body, None)
    return Finding(name, node, what, True, after, around)


def _place(wanted: int, body: Region, owner: int | None) -> tuple[int | None, int | None]:
    """The node before a node, and the one around it."""
    waiting: list[tuple[Region, int | None]] = [(body, owner)]
    while waiting:
        region, around = waiting.pop()
        before = None
        for node in region.nodes:
            if node.id == wanted:
                return before, around
            before = node.id
            waiting += [(inner, node.id) for inner in node.regions]
    raise ValueError(f"the graph has no node {wanted}")
