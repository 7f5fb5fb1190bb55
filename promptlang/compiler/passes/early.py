"""Early calls: a program call begins as soon as its arguments are known, so that it runs beside what stood before it.

The interpreter starts a call and goes on; who reads its result waits. So the earlier a call begins, the more passes of
the model it shares with others. Only its beginning moves: its value is bound where it was, so variables keep their
order, and faults their place.

A call begins early only where that can be neither wrong nor dear:

- Its arguments can't fail, and fit: texts, values that are written out, and variables that surely have the very type
  that the program asks for. What a call gave is no such variable, for the call might be under way.
- Nothing that it begins before may turn it away: no `require`, no `keep` but of the best, no `return`, `break` or
  `adopt`, and nothing with an effect. (A fault may; then the run fails with it, as it would have.)
- Nothing ends it half-way: it does not stand in branches that compete at a `keep`, nor in what a `require` does again,
  nor in a program that is called from there.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count

from promptlang.compiler.graph import (
    AdoptNode,
    CallNode,
    GenNode,
    Graph,
    JumpNode,
    KeepNode,
    LetNode,
    Node,
    Region,
    RequireNode,
    SelectNode,
    StartNode,
    UseNode,
    walk,
    with_regions,
)
from promptlang.compiler.passes.facts import ASKS, Facts, may_take_back
from promptlang.compiler.passes.findings import Finding, Graphs, Passed
from promptlang.compiler.walk import bound_by, inside, with_scopes
from promptlang.grammar.shapes import Shape, Str
from promptlang.syntax.ast import Expression, Literal, Name, Template
from promptlang.syntax.walk import names_in
from promptlang.values.values import Value

NAME = "early"
MOST_STEPS = 64
"""The most nodes of its region that a call begins before."""


def early(graphs: Graphs) -> dict[str, Passed]:
    """Begin each call above the model calls that it does not depend on."""
    facts = Facts(graphs)
    return {
        name: Passed(graph) if name in facts.taken_back else _Starting(graph, graphs, facts).passed()
        for name, graph in graphs.items()
    }


class _Starting:
    """One program."""

    def __init__(self, graph: Graph, graphs: Graphs, facts: Facts) -> None:
        self._graph = graph
        self._graphs = graphs
        self._facts = facts
        self._shapes = dict(_shapes_of_variables(graph))
        self._ids = count(1 + max((node.id for node in walk(graph.body)), default=0))
        self._findings: list[Finding] = []

    def passed(self) -> Passed:
        body = self._region(self._graph.body, None)
        return Passed(replace(self._graph, body=body), tuple(self._findings))

    def _region(self, region: Region, scope: int | None) -> Region:
        nodes: list[Node] = []
        starts: defaultdict[int, list[Node]] = defaultdict(list)
        for place, node in enumerate(region.nodes):
            before = region.nodes[max(0, place - MOST_STEPS) : place]
            early = self._beginning(_Early(place, node), before, scope) if isinstance(node, CallNode) else None
            if isinstance(node, CallNode) and early is not None:
                self._findings.append(Finding(NAME, node, "begins as soon as what it needs is known"))
                starts[early.place].append(self._start(early.call))
                node = replace(node, reads=frozenset(), is_started=True)
            elif not may_take_back(node):
                node = self._inside(node, scope)
            nodes.append(node)
        return Region(tuple(one for place, node in enumerate(nodes) for one in (*starts[place], node)))

    def _inside(self, node: Node, scope: int | None) -> Node:
        within = node.id if isinstance(node, UseNode) else scope
        regions = []
        for inner in node.regions:
            regions.append(self._region(inner, within))  # noqa: PERF401 - each frame counts where blocks nest
        return with_regions(node, regions)

    def _start(self, call: CallNode) -> StartNode:
        return StartNode(id=next(self._ids), span=call.span, reads=call.reads, call=call)

    def _beginning(self, call: "_Early", before: tuple[Node, ...], scope: int | None) -> "_Early | None":
        """The call where it can begin at the earliest; None where no model call stands between."""
        if not self._facts.is_pure([call.call]):
            return None
        asks = False
        for node in reversed(before):
            moved = call.above(node) if self._facts.is_pure([node]) else None
            if moved is None:
                break
            call = moved
            asks = asks or any(isinstance(inner, ASKS) for inner in inside([node]))
        return call if asks and self._fits(call.call, scope) else None

    def _fits(self, call: CallNode, scope: int | None) -> bool:
        """Whether the arguments surely have values of the parameters' types."""
        wanted = self._graphs[call.callee].shapes
        return all(self._is_of(value, wanted[name], scope) for name, value in call.arguments.items())

    def _is_of(self, value: Expression, shape: Shape, scope: int | None) -> bool:
        match value:
            case Literal(value=known):
                return _is_valid(shape, known)
            case Template(parts=parts):
                holes = [part for part in parts if not isinstance(part, str)]
                return shape == Str() and all(isinstance(hole, Literal) or self._shape(hole, scope) for hole in holes)
        return self._shape(value, scope) == shape

    def _shape(self, value: Expression, scope: int | None) -> Shape | None:
        """What a variable surely looks like; None where that is not known."""
        return self._shapes.get((scope, value.name)) if isinstance(value, Name) else None


def _is_valid(shape: Shape, value: object) -> bool:
    # The engine behind it is slow to import, and few programs give a call a literal.
    from promptlang.grammar.reader import validate

    try:
        validate(shape, value)
    except ValueError:
        return False
    return True


def _shapes_of_variables(graph: Graph) -> Iterator[tuple[tuple[int | None, str], Shape]]:
    """What variables look like, where everything that binds one gives it the same shape and none is a call. A name that
    a constant has too may mean that."""
    constants: dict[int | None, Mapping[str, Value]] = {None: graph.constants}
    found: defaultdict[tuple[int | None, str], list[Shape | None]] = defaultdict(list)
    for parameter in graph.parameters:
        found[None, parameter.name].append(graph.shapes[parameter.name])
    for node, scope in with_scopes(graph.body):
        for name in bound_by(node):
            found[scope, name].append(_given(node))
        if isinstance(node, UseNode):
            constants[node.id] = node.constants
            for parameter in node.parameters:
                found[node.id, parameter.name].append(None)
    for (scope, name), shapes in found.items():
        if shapes[0] is not None and all(shape == shapes[0] for shape in shapes) and name not in constants[scope]:
            yield (scope, name), shapes[0]


def _given(node: Node) -> Shape | None:
    match node:
        case GenNode(shape=shape):
            return shape or Str()
        case SelectNode() | LetNode(value=Template()):
            return Str()
    return None


@dataclass(frozen=True)
class _Early:
    """A call that begins before a place of its region, with the arguments that it has there."""

    place: int
    call: CallNode

    def above(self, node: Node) -> "_Early | None":
        """The same before the node that stands before it; None where it must not."""
        everything = list(inside([node]))
        if any(self._turns_away(each) or self._is_same_program(each) for each in everything):
            return None
        made = {name for each in everything for name in bound_by(each)}
        call = self._with_value(node) if isinstance(node, LetNode) else self.call
        return replace(self, place=self.place - 1, call=call) if made.isdisjoint(call.reads) else None

    def _with_value(self, let: LetNode) -> CallNode:
        """The call with what a variable is given in its place, where it is an argument."""
        given = {
            name: let.value if isinstance(value, Name) and value.name == let.target else value
            for name, value in self.call.arguments.items()
        }
        return replace(self.call, arguments=given, reads=names_in(list(given.values())))

    def _turns_away(self, node: Node) -> bool:
        return isinstance(node, AdoptNode | JumpNode | RequireNode) or (
            isinstance(node, KeepNode) and node.kind != "best"
        )

    def _is_same_program(self, node: Node) -> bool:
        """Calls of one program keep their order, which gives them their names."""
        return isinstance(node, CallNode) and node.callee == self.call.callee
