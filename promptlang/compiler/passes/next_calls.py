"""Next calls: before each node, which programs will still be called, and how many model calls lie between.

The cache asks this before it asks the clock: what a program begins with is kept for its next call, the nearest longest
(compare KVFlow's steps to execution, arXiv:2507.07400). It is the analysis by which compilers choose the register to
spill (Belady's rule), with a program's beginning for a register. Distances are estimates: a loop may go round again,
the longest way through an `if` or a fork counts, and a program that calls itself counts as one model call there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from promptlang.compiler.graph import (
    BeamNode,
    CallNode,
    Distances,
    ForNode,
    GenNode,
    Graph,
    Node,
    Region,
    RequireNode,
    ReturnNode,
    ScoreNode,
    SelectNode,
    WhileNode,
    with_regions,
)
from promptlang.compiler.passes.findings import Finding, Graphs, Passed

NAME = "next_calls"

_GO_ROUND = (ForNode, WhileNode, BeamNode, RequireNode)
"""Nodes whose body may run again after its end."""
_REPEATS = (ForNode, WhileNode, BeamNode, RequireNode)


def next_calls(graph: Graph, graphs: Graphs) -> Passed:
    """Note before each node of a program which programs will be called from there on, and how soon."""
    marking = _Marking(graphs)
    first = marking.span(graph.body).first
    if not first:
        return Passed(graph)
    told = ", ".join(f"{program} after {distance}" for program, distance in first.items())
    finding = Finding(NAME, graph.body.nodes[0], f"programs called, and model calls before: {told}")
    return Passed(replace(graph, body=marking.region(graph.body, {})), (finding,))


@dataclass(frozen=True)
class _Span:
    """A piece of a program.

    Attributes:
        calls: model calls it makes.
        first: by program that it calls, model calls before that.
    """

    calls: int
    first: Distances

    def before(self, after: Distances) -> Distances:
        """What lies ahead of its start, given what lies ahead of its end."""
        return _nearest([self.first, {program: distance + self.calls for program, distance in after.items()}])


class _Marking:
    """Goes through a program backwards."""

    def __init__(self, graphs: Graphs) -> None:
        self._graphs = graphs
        self._programs: dict[str, _Span] = {}

    def region(self, region: Region, after: Distances) -> Region:
        """The region marked, given what lies ahead of its end."""
        nodes: list[Node] = []
        for node in reversed(region.nodes):
            ahead = {} if isinstance(node, ReturnNode) else self._span_of(node).before(after)
            inside = _nearest([after, ahead]) if isinstance(node, _REPEATS) else after
            marked = with_regions(node, [self.region(inner, inside) for inner in node.regions])
            nodes.append(replace(marked, next_calls=ahead))
            after = ahead
        return Region(tuple(reversed(nodes)))

    def span(self, region: Region) -> _Span:
        """One round of each loop, and the longest branch of each fork and `if`."""
        whole = _Span(0, {})
        for node in reversed(region.nodes):
            part = self._span_of(node)
            whole = _Span(part.calls + whole.calls, part.before(whole.first))
        return whole

    def _span_of(self, node: Node) -> _Span:
        match node:
            case GenNode() | SelectNode() | ScoreNode():
                return _Span(1, {})
            case CallNode():
                called = self._program(node.callee)
                return _Span(called.calls, {**called.first, node.callee: 0})
        inside = [self.span(region) for region in node.regions]
        return _Span(max((span.calls for span in inside), default=0), _nearest(span.first for span in inside))

    def _program(self, name: str) -> _Span:
        if name not in self._programs:
            self._programs[name] = _Span(1, {})
            self._programs[name] = self.span(self._graphs[name].body)
        return self._programs[name]


def _nearest(ways: Iterable[Distances]) -> Distances:
    """Of several ways on, the nearest call of each program."""
    nearest: dict[str, int] = {}
    for way in ways:
        for program, distance in way.items():
            nearest[program] = min(distance, nearest.get(program, distance))
    return nearest
