"""Dead code: calls and branches that nothing reads never run.

Dead is what can't reach the program's result and has no other effect: it logs nothing, and it does not compete at a
`keep` with branches that are read. A program without `return` gives all its variables, so nothing of it is dead.
What is dead can't fail either, and its variable is not among those that a run reports.
"""

from dataclasses import replace

from promptlang.compiler.graph import BeamNode, CallNode, ForkNode, Graph, LetNode, Node, Region, walk, with_regions
from promptlang.compiler.passes.facts import always_returns, expressions_of, inside, is_pure, keeps_in, parts_of
from promptlang.compiler.passes.findings import Finding, Graphs, Passed, removal
from promptlang.syntax.ast import Attribute, Expression, Index, Literal, Name

NAME = "dead"


def dead(graph: Graph, graphs: Graphs) -> Passed:
    """Drop the calls and the branches that nothing reads, and then those that only they read."""
    findings: list[Finding] = []
    while always_returns(graph.body):
        removing = _Removing(graph, graphs)
        body = removing.region(graph.body)
        if not removing.findings:
            break
        findings += removing.findings
        graph = replace(graph, body=body)
    return Passed(graph, tuple(findings))


class _Removing:
    """One round over a program. What stands in a branch may be read as the branch's field, so it stays."""

    def __init__(self, graph: Graph, graphs: Graphs) -> None:
        self._graph = graph
        self._graphs = graphs
        self._nodes = list(walk(graph.body))
        made = [node for node in self._nodes if isinstance(node, CallNode | ForkNode | BeamNode)]
        self._made = {name for node in made for name in node.writes}
        self._readers: dict[str, list[int]] = {}
        for node in self._nodes:
            for name in node.reads:
                self._readers.setdefault(name, []).append(id(node))
        self.findings: list[Finding] = []

    def region(self, region: Region) -> Region:
        return Region(tuple(self._kept(node) for node in region.nodes if not self._drops(node)))

    def _kept(self, node: Node) -> Node:
        if isinstance(node, BeamNode):
            return node
        if not isinstance(node, ForkNode):
            return with_regions(node, [self.region(inner) for inner in node.regions])
        if node.kind == "each" or any(map(keeps_in, node.bodies)) or not is_pure([node], self._graphs):
            return node
        return self._needed_arms(node) if node.kind == "arms" else self._needed_branches(node)

    def _drops(self, node: Node) -> bool:
        if not self._can_be_dead(node) or self._is_read(node) or not is_pure([node], self._graphs):
            return False
        self.findings.append(removal(NAME, node, "never runs: nothing reads it", self._graph))
        return True

    def _can_be_dead(self, node: Node) -> bool:
        return isinstance(node, CallNode | ForkNode | BeamNode) or (
            isinstance(node, LetNode) and bool(node.reads & self._made)
        )

    def _is_read(self, node: Node) -> bool:
        own = {id(each) for each in inside([node])}
        return any(reader not in own for name in node.writes for reader in self._readers.get(name, ()))

    def _needed_arms(self, node: ForkNode) -> Node:
        """The fork with the arms that are read, where all that is read of it are arms."""
        uses = self._uses(node)
        if not all(isinstance(use, Attribute) for use in uses):
            return node
        read = {use.name for use in uses if isinstance(use, Attribute)}
        kept = [index for index, arm in enumerate(node.arms) if arm in read]
        lost = [index for index in range(len(node.arms)) if index not in kept]
        for index in lost:
            gone = node.bodies[index].nodes[:1]
            what = f"arm {node.arms[index]} never runs: nothing reads it"
            self.findings += [removal(NAME, each, what, self._graph) for each in gone] or [Finding(NAME, node, what)]
        if not lost:
            return node
        arms, bodies = zip(*((node.arms[index], node.bodies[index]) for index in kept), strict=True)
        return replace(node, arms=arms, bodies=bodies)

    def _needed_branches(self, node: ForkNode) -> Node:
        """The fork with the branches up to the last that is read, where each is read by a number that is known."""
        numbers = [_number(use) for use in self._uses(node)]
        if not isinstance(node.over, Literal) or not isinstance(node.over.value, int) or None in numbers:
            return node
        needed = 1 + max(number for number in numbers if number is not None)
        if needed >= node.over.value:
            return node
        what = f"branches {needed} to {node.over.value - 1} never run: nothing reads them"
        self.findings.append(Finding(NAME, node, what))
        return replace(node, over=replace(node.over, value=needed))

    def _uses(self, fork: ForkNode) -> list[Expression]:
        """Each place that reads the fork's name: the name itself, or the attribute or item taken of it."""
        own = {id(each) for each in inside([fork])}
        found: list[Expression] = []
        waiting = [part for node in self._nodes if id(node) not in own for part in expressions_of(node)]
        while waiting:
            part = waiting.pop()
            match part:
                case Attribute(value=Name(name=fork.name)) | Name(name=fork.name):
                    found.append(part)
                case Index(value=Name(name=fork.name), index=index):
                    found.append(part)
                    waiting.append(index)
                case _:
                    waiting += parts_of(part)
        return found


def _number(use: Expression) -> int | None:
    """Which branch is read; None where that is not known."""
    if isinstance(use, Index) and isinstance(use.index, Literal) and isinstance(use.index.value, int):
        return use.index.value if use.index.value >= 0 else None
    return None
