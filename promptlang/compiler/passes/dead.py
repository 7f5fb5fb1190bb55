"""Dead code: calls and branches that nothing reads never run.

Dead is what can't reach the program's result and has no other effect: it logs nothing, and it does not compete at a
`keep` with branches that are read. A program without `return` gives all its variables, so nothing of it is dead.
What is dead can't fail either, and its variable is not among those that a run reports.

What is left keeps its names: arms and branches their numbers, calls and forks their place among those of one name,
variables their order. So a call or a fork stays where its going would give another one its name, in messages and for
random numbers, and so does what binds a variable that something else binds too.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from promptlang.compiler.graph import (
    BeamNode,
    CallNode,
    ForkNode,
    Graph,
    JumpNode,
    LetNode,
    Node,
    Region,
    UseNode,
    with_regions,
)
from promptlang.compiler.passes.facts import REPEATS, Facts, always_returns
from promptlang.compiler.passes.findings import Finding, Graphs, Passed, Places
from promptlang.compiler.walk import bound_in, expressions_of, in_frame, keeps_in, with_scopes
from promptlang.syntax.ast import Attribute, Expression, Index, Literal, Name
from promptlang.syntax.walk import parts_of

NAME = "dead"
_BRANCHES = (ForkNode, BeamNode)

Made: TypeAlias = CallNode | ForkNode | BeamNode

Variable: TypeAlias = tuple[int | None, str]
"""A name in its scope."""


def dead(graphs: Graphs) -> dict[str, Passed]:
    """Drop the calls and the branches that nothing reads, and then those that only they read."""
    facts = Facts(graphs)
    return {name: _live(graph, facts) for name, graph in graphs.items()}


def _live(graph: Graph, facts: Facts) -> Passed:
    findings: list[Finding] = []
    while always_returns(graph.body):
        removing = _Removing(graph, facts)
        body = removing.region(graph.body)
        if not removing.findings:
            break
        findings += removing.findings
        graph = replace(graph, body=body)
    return Passed(graph, tuple(findings))


class _Removing:
    """One round over a program. What stands in a branch may be read as the branch's field, so it stays with it."""

    def __init__(self, graph: Graph, facts: Facts) -> None:
        self._facts = facts
        self._places = Places(graph.body)
        self._dead = _dead_nodes(graph, facts)
        self._uses = _uses_of_forks(graph, self._dead)
        self.findings: list[Finding] = []

    def region(self, region: Region) -> Region:
        nodes: list[Node] = []
        skipped: Counter[str] = Counter()
        for node in region.nodes:
            if node.id in self._dead:
                self.findings.append(self._places.removal(NAME, node, "never runs: nothing reads it"))
                if isinstance(node, CallNode):
                    skipped[node.callee] += 1 + node.skipped
            elif isinstance(node, CallNode):
                nodes.append(replace(node, skipped=node.skipped + skipped.pop(node.callee, 0)))
            else:
                nodes.append(self._kept(node))
        return Region(tuple(nodes))

    def _kept(self, node: Node) -> Node:
        if isinstance(node, BeamNode) or not node.regions:
            return node
        if not isinstance(node, ForkNode):
            regions = []
            for inner in node.regions:
                regions.append(self.region(inner))  # noqa: PERF401 - each frame counts where blocks nest
            return with_regions(node, regions)
        if node.kind == "each" or any(map(keeps_in, node.bodies)) or not self._facts.is_pure([node]):
            return node
        return self._needed_arms(node) if node.kind == "arms" else self._needed_branches(node)

    def _needed_arms(self, node: ForkNode) -> Node:
        """The fork with nothing in the arms that are not read, where all that is read of it are arms."""
        uses = self._uses[node.id]
        if not uses or not all(isinstance(use, Attribute) for use in uses):
            return node
        read = {use.name for use in uses if isinstance(use, Attribute)}
        lost = [index for index, arm in enumerate(node.arms) if arm not in read and node.bodies[index].nodes]
        for index in lost:
            gone = node.bodies[index].nodes[0]
            what = f"arm {node.arms[index]} never runs: nothing reads it"
            self.findings.append(self._places.removal(NAME, gone, what))
        bodies = [Region(()) if index in lost else body for index, body in enumerate(node.bodies)]
        return replace(node, bodies=tuple(bodies))

    def _needed_branches(self, node: ForkNode) -> Node:
        """The fork with the branches up to the last that is read, where each is read by a number that is known."""
        numbers = [_number(use) for use in self._uses[node.id]]
        if not isinstance(node.over, Literal) or not isinstance(node.over.value, int) or None in numbers or not numbers:
            return node
        needed = 1 + max(number for number in numbers if number is not None)
        if needed >= node.over.value:
            return node
        what = f"branches {needed} to {node.over.value - 1} never run: nothing reads them"
        self.findings.append(Finding(NAME, node, what))
        return replace(node, over=replace(node.over, value=needed))


def _number(use: Expression) -> int | None:
    """Which branch is read; None where that is not known."""
    if isinstance(use, Index) and isinstance(use.index, Literal) and isinstance(use.index.value, int):
        return use.index.value if use.index.value >= 0 else None
    return None


def _dead_nodes(graph: Graph, facts: Facts) -> set[int]:
    """The ids of the nodes that nothing reads but what is dead too: all that may go, less what lives reads of it."""
    units = list(_units(graph.body))
    bound = Counter((scope, name) for scope, names in bound_in(graph).items() for name in names)
    made = {(scope, name) for node, scope in units if isinstance(node, Made) for name in node.writes}
    naming = _naming(graph.body)
    dead: dict[int, tuple[Node, int | None]] = {}
    live: list[tuple[Node, int | None]] = []
    for node, scope in units:
        is_made = isinstance(node, Made) or any((scope, name) in made for name in node.reads)
        is_alone = all(bound[scope, name] == 1 for name in node.writes)
        if is_made and is_alone and isinstance(node, Made | LetNode) and node.id not in naming:
            dead[node.id] = node, scope
        else:
            live.append((node, scope))
    live += [dead.pop(node.id) for node, _ in list(dead.values()) if not facts.is_pure([node])]
    writers = {(scope, name): node.id for node, scope in dead.values() for name in node.writes}
    while live:
        for variable in _read_by(*live.pop()):
            if (writer := writers.get(variable)) in dead:
                live.append(dead.pop(writer))
    return set(dead)


def _units(region: Region) -> Iterator[tuple[Node, int | None]]:
    """The nodes that go or stay on their own, with the scopes of their names: a fork or a beam as a whole."""
    stack: list[tuple[Node, int | None]] = [(node, None) for node in reversed(region.nodes)]
    while stack:
        node, scope = stack.pop()
        yield node, scope
        if not isinstance(node, _BRANCHES):
            within = node.id if isinstance(node, UseNode) else scope
            stack.extend((child, within) for inner in reversed(node.regions) for child in reversed(inner.nodes))


def _read_by(unit: Node, scope: int | None) -> Iterator[Variable]:
    """The variables that a unit reads."""
    nodes = [(unit, scope)]
    if isinstance(unit, _BRANCHES):
        nodes = list(with_scopes(Region((unit,)), scope))
    for node, within in nodes:
        for name in node.reads:
            yield within, name


def _uses_of_forks(graph: Graph, dead: set[int]) -> dict[int, list[Expression]]:
    """By the id of a fork, each place that reads its name: the name itself, or the attribute or item taken of it."""
    uses: defaultdict[Variable, list[Expression]] = defaultdict(list)
    forks: list[tuple[int, Variable]] = []
    for unit, outer in _units(graph.body):
        if unit.id in dead:
            continue
        if isinstance(unit, ForkNode):
            forks.append((unit.id, (outer, unit.name)))
        nodes = with_scopes(Region((unit,)), outer) if isinstance(unit, _BRANCHES) else [(unit, outer)]
        for node, scope in nodes:
            for name, use in _uses(expressions_of(node)):
                uses[scope, name].append(use)
    return {fork: uses[variable] for fork, variable in forks}


def _uses(parts: list[Any]) -> Iterator[tuple[str, Expression]]:
    """The names in expressions, each with what is taken of it."""
    waiting = list(parts)
    while waiting:
        part = waiting.pop()
        match part:
            case Attribute(value=Name(name=name)) | Name(name=name):
                yield name, part
            case Index(value=Name(name=name), index=index):
                yield name, part
                waiting.append(index)
            case _:
                waiting += parts_of(part)


def _series(node: Made) -> str:
    """What a call or a fork is counted among."""
    return f"{node.callee}()" if isinstance(node, CallNode) else node.name


def _naming(region: Region) -> set[int]:
    """The calls and forks that must stay for the sake of later ones: the second call of a program is `route()[1]`.

    One may go where no other of its name can follow on this prompt; a call also where the next stands in the same
    region and surely runs: that one counts it.
    """
    naming = _Naming(region)
    naming.find(region, set())
    return naming.staying


class _Naming:
    """Looks for calls and forks that name later ones, on one prompt.

    Attributes:
        staying: what was found, by id.
    """

    def __init__(self, region: Region) -> None:
        self.staying: set[int] = set()
        self._made: dict[int, set[str]] = {}
        self._jumps: set[int] = set()
        for node in reversed(list(in_frame(region.nodes))):  # what is inside comes before what it is in
            inner = [] if isinstance(node, _BRANCHES) else [one for part in node.regions for one in part.nodes]
            self._made[node.id] = {_series(node)} if isinstance(node, Made) else set()
            self._made[node.id].update(*(self._made[one.id] for one in inner))
            if isinstance(node, JumpNode) or any(one.id in self._jumps for one in inner):
                self._jumps.add(node.id)

    def find(self, region: Region, later: set[str]) -> None:
        """Go through a region backwards.

        Args:
            later: what may be made after it, by its series; what is made in it is added.
        """
        following: set[str] = set()
        for node in reversed(region.nodes):
            made = self._made[node.id]
            if isinstance(node, Made):
                if _series(node) in later and _series(node) not in following:
                    self.staying.add(node.id)
                following |= made if isinstance(node, CallNode) else set()
            else:
                if isinstance(node, REPEATS):
                    later |= made
                for inner in reversed(node.regions):
                    self.find(inner, later)
                following = set() if node.id in self._jumps else following - made
            later |= made
