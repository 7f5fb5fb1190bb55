"""Next calls: before each node, which programs will still be called, and how many model calls lie between.

The cache asks this before it asks the clock: what a program begins with is kept for its next call, the nearest longest
(compare KVFlow's steps to execution, arXiv:2507.07400). It is the analysis by which compilers choose the register to
spill (Belady's rule), with a program's beginning for a register. Distances are estimates: a loop may go round again,
the longest way through an `if` or a fork counts, and a program that calls itself counts as one model call there.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from heapq import nsmallest

from promptlang.compiler.graph import CallNode, Distances, Graph, Node, Region, ReturnNode, StartNode, with_regions
from promptlang.compiler.passes.facts import ASKS, REPEATS
from promptlang.compiler.passes.findings import Finding, Graphs, Passed
from promptlang.compiler.walk import callees_first

NAME = "next_calls"
MOST_PROGRAMS = 64
"""The most programs that are noted before a node, the nearest: for what comes later than these no room is kept."""


def next_calls(graphs: Graphs) -> dict[str, Passed]:
    """Note before each node of a program which programs will be called from there on, and how soon."""
    spans: dict[str, _Span] = {}
    for name in callees_first(graphs):
        spans[name] = _Marking(spans).span(graphs[name].body)
    return {name: _marked(graph, spans) for name, graph in graphs.items()}


def _marked(graph: Graph, spans: "dict[str, _Span]") -> Passed:
    marking = _Marking(spans)
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
        if not self.calls and not self.first:
            return after
        return _nearest([self.first, {program: distance + self.calls for program, distance in after.items()}])


class _Marking:
    """Goes through a program backwards.

    Args:
        spans: of the programs that it calls; one that is missing calls itself.
    """

    def __init__(self, spans: dict[str, _Span]) -> None:
        self._programs = spans
        self._spans: dict[int, _Span] = {}

    def region(self, region: Region, after: Distances) -> Region:
        """The region marked, given what lies ahead of its end."""
        nodes: list[Node] = []
        for node in reversed(region.nodes):
            ahead = {} if isinstance(node, ReturnNode) else self._span_of(node).before(after)
            inside = _nearest([after, ahead]) if isinstance(node, REPEATS) else after
            regions = []
            for inner in node.regions:
                regions.append(self.region(inner, inside))  # noqa: PERF401 - each frame counts where blocks nest
            nodes.append(replace(with_regions(node, regions), next_calls=ahead))
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
        if node.id not in self._spans:
            self._spans[node.id] = self._new_span(node)
        return self._spans[node.id]

    def _new_span(self, node: Node) -> _Span:
        call = node.call if isinstance(node, StartNode) else node
        if isinstance(call, CallNode):
            if call.is_started:
                return _Span(0, {})
            called = self._programs.get(call.callee, _Span(1, {}))
            return _Span(called.calls, _nearest([called.first, {call.callee: 0}]))
        spans = [_Span(1, {})] if isinstance(node, ASKS) else []
        for region in node.regions:
            spans.append(self.span(region))  # noqa: PERF401 - each frame counts where blocks nest
        return _Span(max((span.calls for span in spans), default=0), _nearest(span.first for span in spans))


def _nearest(ways: Iterable[Distances]) -> Distances:
    """Of several ways on, the nearest call of each program."""
    nearest: dict[str, int] = {}
    for way in ways:
        for program, distance in way.items():
            nearest[program] = min(distance, nearest.get(program, distance))
    if len(nearest) > MOST_PROGRAMS:
        return dict(nsmallest(MOST_PROGRAMS, nearest.items(), key=lambda item: item[1]))
    return nearest
