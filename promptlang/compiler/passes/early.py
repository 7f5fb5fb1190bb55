"""Early calls: a program call moves up to where its arguments are known, so that it runs beside what stood before it.

The interpreter starts a call and goes on; who reads its result waits. So the earlier a call stands, the more passes of
the model it shares with others.
"""

from dataclasses import replace

from promptlang.compiler.graph import (
    AdoptNode,
    CallNode,
    ForNode,
    GenNode,
    Graph,
    JumpNode,
    LetNode,
    Node,
    Region,
    ScoreNode,
    SelectNode,
    WhileNode,
    map_regions,
)
from promptlang.compiler.passes.facts import PURE, inside, is_pure
from promptlang.compiler.passes.findings import Finding, Graphs, Passed

NAME = "early"


def early(graph: Graph, graphs: Graphs) -> Passed:
    """Move each call above the model calls that it does not depend on."""
    findings: list[Finding] = []

    def change(region: Region) -> Region:
        nodes: list[Node] = []
        arguments = {name for node in region.nodes if isinstance(node, CallNode) for name in node.reads}
        for node in region.nodes:
            may_move = _is_argument(node, arguments) or (isinstance(node, CallNode) and is_pure([node], graphs))
            place = _place(node, nodes) if may_move else len(nodes)
            if place < len(nodes):
                findings.append(Finding(NAME, node, "runs as soon as what it needs is known"))
            nodes.insert(place, node)
        return Region(tuple(nodes))

    return Passed(replace(graph, body=map_regions(graph.body, change)), tuple(findings))


def _is_argument(node: Node, arguments: set[str]) -> bool:
    """Whether a value is computed that a call takes."""
    return isinstance(node, LetNode) and not arguments.isdisjoint(node.writes)


def _place(node: Node, before: list[Node]) -> int:
    """Where a node can stand at the earliest; where it is, if no model call stands between."""
    place = len(before)
    while place and _can_pass(node, before[place - 1]):
        place -= 1
    asks = any(isinstance(other, GenNode | SelectNode | ScoreNode) for other in inside(before[place:]))
    return place if asks else len(before)


def _can_pass(node: Node, other: Node) -> bool:
    """Whether a call or a value may come before a node rather than after it: neither needs what the other makes, and
    the other can't end the block. Calls of one program keep their order, which gives them their names."""
    everything = list(inside([other]))
    leaves = AdoptNode if isinstance(other, ForNode | WhileNode) else AdoptNode | JumpNode
    if not all(isinstance(each, PURE) and not isinstance(each, leaves) for each in everything):
        return False
    made = {name for each in everything for name in each.writes}
    touched = {name for each in everything for name in each.reads} | made
    same = isinstance(node, CallNode) and any(
        isinstance(each, CallNode) and each.callee == node.callee for each in everything
    )
    return not same and made.isdisjoint(node.reads) and touched.isdisjoint(node.writes)
