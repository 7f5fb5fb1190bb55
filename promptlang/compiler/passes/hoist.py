"""Hoisting: text that every branch of a fork begins with moves into the fork's head, which runs once.

The parent's prompt stays what it was: the head runs on a prompt of its own, from which the branches start. (The
cache shares the tokens of a common beginning anyway; what this saves is building, rendering and tokenising the text
once a branch, and it lets the graph show what branches share.)
"""

from dataclasses import replace
from itertools import takewhile

from promptlang.compiler.graph import ForkNode, Graph, Node, Region, TextNode, TurnNode, map_regions
from promptlang.compiler.passes.findings import Finding, Graphs, Passed
from promptlang.compiler.walk import content, inside
from promptlang.syntax.ast import Literal, Name

NAME = "hoist"


def hoist(graphs: Graphs) -> dict[str, Passed]:
    """Move what branches begin with in common before the branches."""
    return {name: _hoisted(graph) for name, graph in graphs.items()}


def _hoisted(graph: Graph) -> Passed:
    findings: list[Finding] = []

    def change(region: Region) -> Region:
        return Region(tuple(moved(node) for node in region.nodes))

    def moved(node: Node) -> Node:
        count = _common(node) if isinstance(node, ForkNode) else 0
        if not count:
            return node
        assert isinstance(node, ForkNode)
        shared = Region(node.head.nodes + node.bodies[0].nodes[:count])
        findings.extend(Finding(NAME, each, "every branch begins with it: runs once") for each in shared.nodes)
        return replace(node, head=shared, bodies=tuple(Region(body.nodes[count:]) for body in node.bodies))

    return Passed(replace(graph, body=map_regions(graph.body, change)), tuple(findings))


def _common(node: ForkNode) -> int:
    """How many nodes all branches begin with in common, of those that are nothing but text."""
    heads = zip(*(body.nodes for body in node.bodies), strict=False)
    return sum(1 for _ in takewhile(lambda nodes: _is_shared(nodes, set(node.targets)), heads))


def _is_shared(nodes: tuple[Node, ...], own: set[str]) -> bool:
    """Whether nodes, one a branch, are the same text, which can't fail, and no branch's own variable is in it."""
    everything = list(inside(nodes))
    is_text = all(isinstance(node, TurnNode) or (isinstance(node, TextNode) and _is_sure(node)) for node in everything)
    is_common = all(own.isdisjoint(node.reads) for node in everything)
    if not (is_text and is_common):
        return False
    first = content(Region(nodes[:1]))
    return all(content(Region((node,))) == first for node in nodes[1:])


def _is_sure(text: TextNode) -> bool:
    """Whether a text can't fail: a fault belongs to the branch that it happens in."""
    return all(isinstance(part, str | Literal | Name) for part in text.text.parts)
