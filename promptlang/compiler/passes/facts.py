"""What passes ask about programs: which have effects, which do the same each time, which may be taken back."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property

from promptlang.compiler.graph import (
    AdoptNode,
    BeamNode,
    CallNode,
    ForkNode,
    ForNode,
    GenNode,
    Graph,
    IfNode,
    JumpNode,
    KeepNode,
    LetNode,
    Node,
    PinNode,
    Region,
    RequireNode,
    ReturnNode,
    ScoreNode,
    SelectNode,
    StartNode,
    TextNode,
    TurnNode,
    UseNode,
    WhileNode,
    walk,
)
from promptlang.compiler.walk import called_by, callees_of, inside, keeps_in
from promptlang.syntax.ast import Literal

__all__ = ["ASKS", "REPEATS", "Facts", "always_returns", "called_by", "inside", "is_greedy"]

ASKS = (GenNode, SelectNode, ScoreNode)
"""Kinds of nodes that ask the model."""

REPEATS = (ForNode, WhileNode, BeamNode, RequireNode)
"""Kinds of nodes whose body may run again after its end."""

_PURE = (
    TextNode,
    TurnNode,
    GenNode,
    SelectNode,
    ScoreNode,
    LetNode,
    CallNode,
    StartNode,
    UseNode,
    IfNode,
    ForNode,
    WhileNode,
    JumpNode,
    ForkNode,
    BeamNode,
    KeepNode,
    PinNode,
    AdoptNode,
    RequireNode,
)
"""Kinds of nodes that do nothing but to their own prompt and variables. What is not listed has an effect."""


class Facts:
    """What is known of all programs of a bundle together; each question is answered once for all.

    Args:
        graphs: the programs, by name.
    """

    def __init__(self, graphs: Mapping[str, Graph]) -> None:
        self._graphs = graphs

    def is_pure(self, nodes: Iterable[Node]) -> bool:
        """Whether nodes, and the programs that they call, have no effect but on their own prompts and variables."""
        return all(
            isinstance(node, _PURE) and not (isinstance(node, CallNode) and node.callee in self._with_effects)
            for node in inside(nodes)
        )

    def is_repeatable(self, nodes: Iterable[Node]) -> bool:
        """Whether nodes, and the programs that they call, do the same whenever they run."""
        return all(
            _is_repeatable(node) and not (isinstance(node, CallNode) and node.callee in self._varying)
            for node in inside(nodes)
        )

    @cached_property
    def taken_back(self) -> frozenset[str]:
        """The programs of which a call may be ended, or done again, while it runs: they are called from what competes
        at a `keep` or stands before a `require`."""
        found: set[str] = set()
        waiting = [(node, False) for graph in self._graphs.values() for node in graph.body.nodes]
        while waiting:
            node, is_within = waiting.pop()
            if is_within and isinstance(node, CallNode):
                found.add(node.callee)
            is_within = is_within or may_take_back(node)
            waiting += [(child, is_within) for inner in node.regions for child in inner.nodes]
        return self._closed(found, self._callees)

    @cached_property
    def _callees(self) -> dict[str, list[str]]:
        return {name: callees_of(graph.body.nodes) for name, graph in self._graphs.items()}

    @cached_property
    def _callers(self) -> dict[str, list[str]]:
        callers: dict[str, list[str]] = {name: [] for name in self._graphs}
        for name, callees in self._callees.items():
            for callee in callees:
                callers[callee].append(name)
        return callers

    @cached_property
    def _with_effects(self) -> frozenset[str]:
        return self._where(lambda node: not isinstance(node, (*_PURE, ReturnNode)))

    @cached_property
    def _varying(self) -> frozenset[str]:
        return self._where(lambda node: not _is_repeatable(node))

    def _where(self, holds: Callable[[Node], bool]) -> frozenset[str]:
        """The programs with such a node, and all that call them."""
        found = {name for name, graph in self._graphs.items() if any(map(holds, walk(graph.body)))}
        return self._closed(found, self._callers)

    def _closed(self, names: set[str], edges: Mapping[str, list[str]]) -> frozenset[str]:
        """The programs, and all that edges lead to from them."""
        found: set[str] = set()
        waiting = list(names)
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += edges[name]
        return frozenset(found)


def may_take_back(node: Node) -> bool:
    """Whether what runs inside a node may be ended before its end, or be done again."""
    return isinstance(node, RequireNode) or (isinstance(node, ForkNode) and any(map(keeps_in, node.bodies)))


def is_greedy(node: Node) -> bool:
    """Whether what the node's model call answers depends on the prompt alone."""
    if not isinstance(node, GenNode | SelectNode):
        return True
    temperature = node.options.get("temperature")
    return temperature is None or (isinstance(temperature, Literal) and temperature.value == 0)


def _is_repeatable(node: Node) -> bool:
    """Whether a node does the same whenever it runs. Who is first at a `keep first` depends on the company."""
    if isinstance(node, PinNode):
        return False
    if isinstance(node, KeepNode):
        return node.kind != "first"
    return is_greedy(node)


def always_returns(region: Region) -> bool:
    """Whether every way through a program ends in `return`."""
    if not region.nodes:
        return False
    last = region.nodes[-1]
    if isinstance(last, IfNode):
        return all(map(always_returns, last.regions))
    return isinstance(last, ReturnNode)
