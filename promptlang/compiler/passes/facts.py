"""What passes ask about nodes."""

from collections.abc import Iterable, Iterator
from dataclasses import fields
from typing import Any

from promptlang.compiler.graph import (
    AdoptNode,
    BeamNode,
    CallNode,
    ForkNode,
    ForNode,
    GenNode,
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
    TextNode,
    TurnNode,
    UseNode,
    WhileNode,
    walk,
)
from promptlang.compiler.passes.findings import Graphs
from promptlang.syntax.ast import AstNode, Expression, Literal
from promptlang.syntax.walk import names_in

PURE = (
    TextNode,
    TurnNode,
    GenNode,
    SelectNode,
    ScoreNode,
    LetNode,
    CallNode,
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


def inside(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes and all nodes in them."""
    return walk(Region(tuple(nodes)))


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


def called_by(nodes: Iterable[Node], graphs: Graphs) -> list[Node]:
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


def is_pure(nodes: Iterable[Node], graphs: Graphs) -> bool:
    """Whether nodes, and the programs that they call, have no effect but on their own prompts and variables."""
    own, called = list(inside(nodes)), called_by(nodes, graphs)
    ends_program = any(isinstance(node, ReturnNode) for node in own)
    return not ends_program and all(isinstance(node, (*PURE, ReturnNode)) for node in called)


def keeps_in(region: Region) -> list[KeepNode]:
    """The `keep`s that prune the branches whose body this is: not those of forks inside."""
    found: list[KeepNode] = []
    waiting = list(region.nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, KeepNode):
            found.append(node)
        elif not isinstance(node, ForkNode):
            waiting += [child for inner in node.regions for child in inner.nodes]
    return found


def is_greedy(node: Node) -> bool:
    """Whether what the node's model call answers depends on the prompt alone."""
    if not isinstance(node, GenNode | SelectNode):
        return True
    temperature = node.options.get("temperature")
    return temperature is None or (isinstance(temperature, Literal) and temperature.value == 0)


def always_returns(region: Region) -> bool:
    """Whether every way through a program ends in `return`."""
    if not region.nodes:
        return False
    last = region.nodes[-1]
    if isinstance(last, IfNode):
        return all(map(always_returns, last.regions))
    return isinstance(last, ReturnNode)


def parts_of(value: Any) -> list[Any]:
    """The AST nodes and tuples right inside an AST node or a tuple."""
    if isinstance(value, AstNode):
        return [getattr(value, item.name) for item in fields(value) if item.name != "span"]
    return list(value) if isinstance(value, tuple) else []


def content(node: Any) -> Any:
    """What a node says, whichever its id."""
    if isinstance(node, Region):
        return _contents(node.nodes)
    if not isinstance(node, Node):
        return node
    named = [(item.name, content(getattr(node, item.name))) for item in fields(node) if item.name not in ("id", "span")]
    return type(node), tuple(named)


def _contents(nodes: Iterable[Node]) -> tuple[Any, ...]:
    return tuple(map(content, nodes))
