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
    StartNode,
    TextNode,
    ToolNode,
    TurnNode,
    UseNode,
    WhileNode,
    walk,
    with_regions,
)
from promptlang.compiler.passes.facts import ASKS
from promptlang.compiler.passes.findings import Finding, Graphs, Passed
from promptlang.compiler.walk import bound_by, in_frame

NAME = "last_use"


def last_use(graphs: Graphs) -> dict[str, Passed]:
    """Mark the nodes after which a prompt is not read again, and the forks of which no branch is adopted."""
    return {name: _marked(graph) for name, graph in graphs.items()}


def _marked(graph: Graph) -> Passed:
    marking = _Marking(_adopted_names(graph))
    body, _ = marking.region(graph.body, False)
    return Passed(replace(graph, body=body), tuple(marking.findings))


def _adopted_names(graph: Graph) -> set[str]:
    """The names whose value may be, or may hold, a branch that is adopted."""
    sources: dict[str, set[str]] = {}
    waiting: list[str] = []
    for node in walk(graph.body):
        if isinstance(node, AdoptNode):
            waiting += node.reads
        fields = _fields(node) if isinstance(node, ForkNode | BeamNode) else frozenset()
        given = [parameter.name for parameter in node.parameters] if isinstance(node, UseNode) else []
        for name in (*bound_by(node), *given):
            sources.setdefault(name, set()).update(node.reads, fields)
    names: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in names:
            names.add(name)
            waiting += sources.get(name, ())
    return names


def _fields(node: ForkNode | BeamNode) -> frozenset[str]:
    """The names that a branch's fields have: each may hold branches of its own."""
    nodes = (inner for region in node.regions for inner in in_frame(region.nodes))
    return frozenset(name for inner in nodes for name in inner.writes)


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
            case TextNode() | LetNode() | CallNode() | StartNode() | ToolNode() | LogNode() | KeepNode() | PinNode():
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
        asks = any(isinstance(inner, (*ASKS, ForkNode, BeamNode)) for inner in walk(Region((node,))))
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
