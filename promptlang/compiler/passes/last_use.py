"""Last uses: where nothing goes on from a prompt any more, the cache is told, and evicts it before what will be read.

The interpreter holds the KV of every prompt until its run ends, for it can't see ahead; this pass can. It is liveness
analysis with the prompt for a variable: model calls and forks read it, `adopt` writes it.
"""

from collections.abc import Iterable
from dataclasses import replace

from promptlang.compiler.graph import (
    AdoptNode,
    BeamNode,
    CallNode,
    ForkNode,
    ForNode,
    GenNode,
    Graph,
    IfNode,
    KeepNode,
    LetNode,
    LogNode,
    Node,
    PinNode,
    Region,
    RequireNode,
    ReturnNode,
    ScoreNode,
    SelectNode,
    TextNode,
    ToolNode,
    TurnNode,
    UseNode,
    WhileNode,
    walk,
    with_regions,
)
from promptlang.compiler.passes.findings import Finding, Graphs, Passed

NAME = "last_use"


def last_use(graph: Graph, graphs: Graphs) -> Passed:
    """Mark the nodes after which a prompt is not read again, and the forks of which no branch is adopted."""
    marking = _Marking(_adopted_names(graph))
    body, _ = marking.region(graph.body, False)
    return Passed(replace(graph, body=body), tuple(marking.findings))


def _adopted_names(graph: Graph) -> set[str]:
    """The names whose value may be, or may hold, a branch that is adopted."""
    nodes = list(walk(graph.body))
    names = {name for node in nodes if isinstance(node, AdoptNode) for name in node.reads}
    known = -1
    while known != len(names):
        known = len(names)
        names |= {name for node in nodes if names & _bound(node) for name in node.reads}
    return names


def _bound(node: Node) -> set[str]:
    given = {parameter.name for parameter in node.parameters} if isinstance(node, UseNode) else set()
    targets = set(node.targets) if isinstance(node, ForkNode) else set()
    return set(node.writes) | given | targets


class _Marking:
    """Goes through a program backwards. `later` says whether the prompt is read after the place that is looked at."""

    def __init__(self, adopted: set[str]) -> None:
        self._adopted = adopted
        self.findings: list[Finding] = []

    def region(self, region: Region, later: bool) -> tuple[Region, bool]:
        """The region marked, and whether the prompt is read from its start on."""
        nodes: list[Node] = []
        for node in reversed(region.nodes):
            marked, later = self._node(node, later)
            nodes.append(marked)
        return Region(tuple(reversed(nodes))), later

    def _node(self, node: Node, later: bool) -> tuple[Node, bool]:
        match node:
            case TextNode() | LetNode() | CallNode() | ToolNode() | LogNode() | KeepNode() | PinNode():
                return node, later
            case AdoptNode() | ReturnNode():
                return node, False
            case GenNode() | SelectNode() | ScoreNode():
                return self._ended(node, later), True
            case TurnNode() | UseNode() | RequireNode():
                body, before = self.region(node.body, later)
                return replace(node, body=body), before
            case IfNode():
                regions, reads = self._regions(node.regions, later)
                return with_regions(node, regions), reads
            case ForNode() | WhileNode():
                body, reads = self.region(node.body, True)
                return self._loop(replace(node, body=body), later), True
            case ForkNode():
                return self._ended(self._fork(node), later), True
            case BeamNode():
                return self._ended(self._beam(node), later), True
        return node, True

    def _regions(self, regions: Iterable[Region], later: bool) -> tuple[list[Region], bool]:
        marked = [self.region(region, later) for region in regions]
        return [region for region, _ in marked], any(before for _, before in marked)

    def _loop(self, node: Node, later: bool) -> Node:
        asks = any(
            isinstance(inner, GenNode | SelectNode | ScoreNode | ForkNode | BeamNode) for inner in walk(Region((node,)))
        )
        return self._ended(node, later) if asks else node

    def _fork(self, node: ForkNode) -> ForkNode:
        keeps = self._keeps(node)
        bodies, _ = self._regions(node.bodies, keeps)
        return replace(node, bodies=tuple(bodies), keeps_prompts=keeps)

    def _beam(self, node: BeamNode) -> BeamNode:
        """What a round leaves is read by the next one."""
        body, _ = self.region(node.body, True)
        return replace(node, body=body, keeps_prompts=self._keeps(node))

    def _keeps(self, node: ForkNode | BeamNode) -> bool:
        keeps = node.name in self._adopted
        if not keeps:
            self.findings.append(Finding(NAME, node, "no branch is adopted: each lets its prompt go at its end"))
        return keeps

    def _ended(self, node: Node, later: bool) -> Node:
        if later:
            return node
        self.findings.append(Finding(NAME, node, "the last to read its prompt"))
        return replace(node, ends_prompt=True)
