"""What a pass is, and what it tells."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
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
        after: id of the node that a removed one stood behind, which is in the graph or removed too; None where it stood
            first.
        around: id of the node of the graph that a removed one stood in; None at the top of the program.
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


Pass: TypeAlias = Callable[[Graphs], dict[str, Passed]]
"""Takes all programs of a bundle and gives what becomes of each; changes nothing that is given."""


class Places:
    """Where the nodes of a graph stand.

    Args:
        body: the graph's.
    """

    def __init__(self, body: Region) -> None:
        self._found: dict[int, tuple[int | None, int | None]] = {}
        waiting: list[tuple[Region, int | None]] = [(body, None)]
        while waiting:
            region, around = waiting.pop()
            before = None
            for node in region.nodes:
                self._found[node.id] = before, around
                before = node.id
                waiting += [(inner, node.id) for inner in node.regions]

    def removal(self, name: str, node: Node, what: str) -> Finding:
        """A finding that a node goes."""
        after, around = self._found[node.id]
        return Finding(name, node, what, True, after, around)

    def settled(self, finding: Finding, kept: Collection[int], removed: Collection[int]) -> Finding:
        """A removal with places that are still there: nodes that were joined or dissolved are passed over.

        Args:
            finding: of any pass over this graph.
            kept: ids of the nodes that all passes leave.
            removed: ids of those that there are removals of.
        """
        after, around = finding.after, finding.around
        while after is not None and after not in kept and after not in removed:
            after, _ = self._found[after]
        while around is not None and around not in kept:
            _, around = self._found[around]
        return replace(finding, after=after, around=around)
