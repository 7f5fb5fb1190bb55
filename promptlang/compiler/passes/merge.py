"""Merging of identical siblings: where every branch of a fork must say the same, one runs and the others are copies.

That is so for `fork N`, and for arms with equal bodies, when no answer in the body is drawn at random: such branches
differ in nothing but their random numbers. A `keep` in the body compares branches and stays as it is. The branches of
`fork x in xs` differ at least in their `x`.
"""

from dataclasses import replace

from promptlang.compiler.graph import ForkNode, Graph, KeepNode, Node, PinNode, Region, map_regions
from promptlang.compiler.passes.facts import called_by, content, is_greedy, is_pure, keeps_in
from promptlang.compiler.passes.findings import Finding, Graphs, Passed
from promptlang.syntax.ast import Literal

NAME = "merge"


def merge(graph: Graph, graphs: Graphs) -> Passed:
    """Mark the forks whose branches are all equal."""
    findings: list[Finding] = []

    def change(region: Region) -> Region:
        return Region(tuple(marked(node) for node in region.nodes))

    def marked(node: Node) -> Node:
        if not isinstance(node, ForkNode) or not _is_uniform(node, graphs):
            return node
        findings.append(Finding(NAME, node, "all branches are equal: one runs, the others are copies"))
        return replace(node, is_merged=True)

    return Passed(replace(graph, body=map_regions(graph.body, change)), tuple(findings))


def _is_uniform(node: ForkNode, graphs: Graphs) -> bool:
    if node.kind == "each" or _is_single(node) or keeps_in(node.bodies[0]):
        return False
    if any(content(body) != content(node.bodies[0]) for body in node.bodies):
        return False
    body = node.bodies[0].nodes
    return is_pure(body, graphs) and all(map(_is_repeatable, called_by(body, graphs)))


def _is_single(node: ForkNode) -> bool:
    if node.kind == "arms":
        return len(node.arms) == 1
    return isinstance(node.over, Literal) and node.over.value in (0, 1)


def _is_repeatable(node: Node) -> bool:
    """Whether a node does the same whenever it runs. Who is first at a `keep first` depends on the company."""
    if isinstance(node, PinNode):
        return False
    if isinstance(node, KeepNode):
        return node.kind != "first"
    return is_greedy(node)
