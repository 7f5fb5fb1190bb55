"""Merging of identical siblings: where every branch of a fork must say the same, one runs and the others are copies.

That is so for `fork N`, and for arms with equal bodies, when no answer in the body is drawn at random: such branches
differ in nothing but their random numbers. A `keep` in the body compares branches and stays as it is. The branches of
`fork x in xs` differ at least in their `x`.
"""

from dataclasses import replace

from promptlang.compiler.graph import ForkNode, Graph, Node, Region, map_regions
from promptlang.compiler.passes.facts import Facts
from promptlang.compiler.passes.findings import Finding, Graphs, Passed
from promptlang.compiler.walk import content, keeps_in
from promptlang.syntax.ast import Literal

NAME = "merge"


def merge(graphs: Graphs) -> dict[str, Passed]:
    """Mark the forks whose branches are all equal."""
    facts = Facts(graphs)
    return {name: _merged(graph, facts) for name, graph in graphs.items()}


def _merged(graph: Graph, facts: Facts) -> Passed:
    findings: list[Finding] = []

    def change(region: Region) -> Region:
        return Region(tuple(marked(node) for node in region.nodes))

    def marked(node: Node) -> Node:
        if not isinstance(node, ForkNode) or not _is_uniform(node, facts):
            return node
        findings.append(Finding(NAME, node, "all branches are equal: one runs, the others are copies"))
        return replace(node, is_merged=True)

    return Passed(replace(graph, body=map_regions(graph.body, change)), tuple(findings))


def _is_uniform(node: ForkNode, facts: Facts) -> bool:
    if node.kind == "each" or _is_single(node) or keeps_in(node.bodies[0]):
        return False
    body = node.bodies[0]
    if not (facts.is_pure(body.nodes) and facts.is_repeatable(body.nodes)):
        return False
    first = content(body)
    return all(content(other) == first for other in node.bodies[1:])


def _is_single(node: ForkNode) -> bool:
    if node.kind == "arms":
        return len(node.arms) == 1
    return isinstance(node.over, Literal) and node.over.value in (0, 1)
