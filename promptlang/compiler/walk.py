"""Ways through a graph: what lies inside nodes, which names they read and bind and in which scope, what calls what."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any

from promptlang.compiler.graph import BeamNode, CallNode, ForkNode, Graph, KeepNode, Node, Region, UseNode, walk
from promptlang.syntax.ast import Expression
from promptlang.syntax.walk import names_in


def inside(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes and all nodes in them."""
    return walk(Region(tuple(nodes)))


def in_frame(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes and all nodes in them that run on the same prompt: not those in the branches of forks and beams."""
    stack = list(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, ForkNode | BeamNode):
            stack.extend(child for inner in reversed(node.regions) for child in reversed(inner.nodes))


def with_scopes(region: Region, scope: int | None = None) -> Iterator[tuple[Node, int | None]]:
    """All nodes in program order, each with the scope of its names: the id of the `use` whose fragment it stands in,
    None where it stands in none. Branches see the names around them, fragments don't.

    Args:
        region: where to begin.
        scope: that it stands in.
    """
    stack: list[tuple[Node, int | None]] = [(node, scope) for node in reversed(region.nodes)]
    while stack:
        node, scope = stack.pop()
        yield node, scope
        within = node.id if isinstance(node, UseNode) else scope
        stack.extend((child, within) for inner in reversed(node.regions) for child in reversed(inner.nodes))


def bound_by(node: Node) -> tuple[str, ...]:
    """The names that a node binds in its scope: `writes`, and those that each branch of a fork has for itself. What an
    `adopt` brings is bound by who bound it in the branch."""
    return (*node.writes, *node.targets) if isinstance(node, ForkNode) else node.writes


def bound_in(graph: Graph) -> dict[int | None, list[str]]:
    """The names that are bound in each scope, once for each node that binds them; parameters too."""
    bound: dict[int | None, list[str]] = {None: [parameter.name for parameter in graph.parameters]}
    for node, scope in with_scopes(graph.body):
        bound[scope] += bound_by(node)
        if isinstance(node, UseNode):
            bound[node.id] = [parameter.name for parameter in node.parameters]
    return bound


def expressions_of(node: Node) -> list[Any]:
    """The values of a node's fields that hold expressions: one, a tuple, or a dict of them."""
    held = []
    for item in fields(node):
        value = getattr(node, item.name)
        parts = (
            list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, tuple) else [value]
        )
        if any(isinstance(part, Expression) for part in parts):
            held += parts
    return held


def read_names(node: Node) -> frozenset[str]:
    """The names that a node's own expressions read."""
    return names_in(expressions_of(node))


def keeps_in(region: Region) -> list[KeepNode]:
    """The `keep`s that prune the branches whose body this is: not those of forks inside."""
    return [node for node in in_frame(region.nodes) if isinstance(node, KeepNode)]


def called_by(nodes: Iterable[Node], graphs: Mapping[str, Graph]) -> list[Node]:
    """The nodes, all nodes in them, and all nodes of the programs that they call, directly or not."""
    found: list[Node] = []
    seen: set[str] = set()
    waiting = list(nodes)
    while waiting:
        for node in inside([waiting.pop()]):
            found.append(node)
            if isinstance(node, CallNode) and node.callee not in seen:
                seen.add(node.callee)
                waiting += graphs[node.callee].body.nodes
    return found


def programs_from(graph: Graph, graphs: Mapping[str, Graph]) -> list[Graph]:
    """A program, and all that it may call, directly or not."""
    callees = {node.callee for node in called_by(graph.body.nodes, graphs) if isinstance(node, CallNode)}
    return [graph, *(graphs[name] for name in sorted(callees))]


def callees_of(nodes: Iterable[Node]) -> list[str]:
    """The programs that nodes call, each once."""
    return list(dict.fromkeys(node.callee for node in inside(nodes) if isinstance(node, CallNode)))


def callees_first(graphs: Mapping[str, Graph]) -> list[str]:
    """All programs, each after those that it calls; of those that call one another, one comes first."""
    order: list[str] = []
    seen: set[str] = set()
    for start in graphs:
        waiting = [(start, False)]
        while waiting:
            name, is_called = waiting.pop()
            if is_called:
                order.append(name)
            elif name not in seen:
                seen.add(name)
                waiting.append((name, True))
                waiting += [(callee, False) for callee in reversed(callees_of(graphs[name].body.nodes))]
    return order


_PLACE = ("id", "span", "reads", "next_calls")


def content(region: Region) -> list[Any]:
    """What a region says, whatever its nodes' ids. Values are told by what is written: `1` is not `true`."""
    told: list[Any] = []
    stack: list[Node] = list(reversed(region.nodes))
    while stack:
        node = stack.pop()
        values = [(item.name, getattr(node, item.name)) for item in fields(node) if item.name not in _PLACE]
        own = [(name, repr(value)) for name, value in values if not _holds_regions(value)]
        told.append((type(node), own, [len(inner.nodes) for inner in node.regions]))
        stack.extend(child for inner in reversed(node.regions) for child in reversed(inner.nodes))
    return told


def _holds_regions(value: Any) -> bool:
    return isinstance(value, Region) or (isinstance(value, tuple) and any(isinstance(item, Region) for item in value))
