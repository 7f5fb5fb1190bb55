"""Constant folding: what is known before the program runs is computed now, and adjacent texts become one.

An expression whose value fails to evaluate stays as it is, so that its fault is reported where and when it happens.
"""

from collections.abc import Mapping
from dataclasses import fields, replace
from itertools import groupby
from typing import Any

from promptlang.compiler.graph import Graph, IfNode, Node, Region, TextNode, UseNode, walk, with_regions
from promptlang.compiler.passes.facts import read_names
from promptlang.compiler.passes.findings import Finding, Graphs, Passed, removal
from promptlang.diagnostics.source import Span
from promptlang.syntax.ast import AstNode, Comprehension, Expression, Literal, Template
from promptlang.syntax.walk import names_in
from promptlang.values.builtins import FUNCTIONS
from promptlang.values.expressions import EvaluationError, evaluate
from promptlang.values.values import Value, render_text

NAME = "fold"
Constants = Mapping[str, Value]


def fold(graph: Graph, graphs: Graphs) -> Passed:
    """Evaluate constant expressions, drop what a constant condition rules out, and join adjacent texts."""
    assigned = {parameter.name for parameter in graph.parameters} | _assigned(graph.body)
    folding = _Folding(graph)
    body = folding.region(graph.body, _without(graph.constants, assigned))
    return Passed(replace(graph, body=body), tuple(folding.findings))


def _assigned(region: Region) -> set[str]:
    return {name for node in walk(region) for name in node.writes}


def _without(constants: Constants, names: set[str]) -> Constants:
    return {name: value for name, value in constants.items() if name not in names}


class _Folding:
    """One program being folded."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.findings: list[Finding] = []

    def region(self, region: Region, constants: Constants) -> Region:
        nodes = [folded for node in region.nodes for folded in self._node(node, constants)]
        groups = [list(group) for _, group in groupby(nodes, key=lambda node: isinstance(node, TextNode))]
        return Region(tuple(node for group in groups for node in self._join(group)))

    def _node(self, node: Node, constants: Constants) -> list[Node]:
        inner = constants
        if isinstance(node, UseNode):
            own = {parameter.name for parameter in node.parameters} | _assigned(node.body)
            inner = _without(node.constants, own)
        node = _with_folded_expressions(node, constants)
        node = with_regions(node, [self.region(region, inner) for region in node.regions])
        return self._decided(node) if isinstance(node, IfNode) else [node]

    def _decided(self, node: IfNode) -> list[Node]:
        """An `if` without the bodies that can't run; its contents alone where nothing is left to decide."""
        conditions: list[Expression] = []
        bodies: list[Region] = []
        otherwise = node.otherwise
        for index, (condition, body) in enumerate(zip(node.conditions, node.bodies, strict=True)):
            truth = _truth(condition)
            if truth is None:
                conditions.append(condition)
                bodies.append(body)
            elif truth:
                self._drop([*node.bodies[index + 1 :], node.otherwise], "the condition before it always holds")
                otherwise = body
                break
            else:
                self._drop([body], "its condition never holds")
        if not conditions:
            return list(otherwise.nodes)
        return [replace(node, conditions=tuple(conditions), bodies=tuple(bodies), otherwise=otherwise)]

    def _drop(self, regions: list[Region], why: str) -> None:
        nodes = [node for region in regions for node in region.nodes]
        self.findings += [removal(NAME, node, f"never runs: {why}", self._graph) for node in nodes]

    def _join(self, group: list[Node]) -> list[Node]:
        """Neighbouring texts as one; other nodes as they are."""
        texts = [node for node in group if isinstance(node, TextNode)]
        if len(texts) < 2:
            return group
        first = texts[0]
        parts = tuple(part for node in texts for part in node.text.parts)
        whole = Template(parts=_merged(parts), span=first.text.span)
        reads = frozenset(name for node in texts for name in node.reads)
        self.findings.append(Finding(NAME, first, f"{len(texts)} texts joined"))
        return [replace(first, text=whole, reads=reads)]


def _truth(condition: Expression) -> bool | None:
    """Whether a folded condition holds; None where that depends."""
    if isinstance(condition, Literal):
        return bool(condition.value)
    if isinstance(condition, Template) and condition.constant is not None:
        return bool(condition.constant)
    return None


def _with_folded_expressions(node: Node, constants: Constants) -> Node:
    changes: dict[str, Any] = {}
    for item in fields(node):
        value = getattr(node, item.name)
        if isinstance(value, Expression):
            changes[item.name] = _folded(value, constants)
        elif isinstance(value, dict) and item.name != "constants":
            changes[item.name] = {name: _folded(inner, constants) for name, inner in value.items()}
        elif isinstance(value, tuple) and value and all(isinstance(inner, Expression) for inner in value):
            changes[item.name] = tuple(_folded(inner, constants) for inner in value)
    if not changes:
        return node
    folded = replace(node, **changes)
    return replace(folded, reads=read_names(folded))


def _folded(expression: Expression, constants: Constants) -> Expression:
    """The expression with its constant parts evaluated, where their values are scalars or text."""
    if isinstance(expression, Literal):
        return expression
    if all(name in constants or name in FUNCTIONS for name in names_in(expression)):
        value = _value(expression, constants)
        if value is not None:
            return value
    if isinstance(expression, Comprehension):
        constants = _without(constants, set(expression.targets))
    if isinstance(expression, Template):
        return replace(expression, parts=_merged(tuple(_part(part, constants) for part in expression.parts)))
    folded = _inside(expression, constants)
    assert isinstance(folded, Expression)
    return folded


def _value(expression: Expression, constants: Constants) -> Expression | None:
    """A literal of the expression's value; None where it has none that can be written so."""
    try:
        value = evaluate(expression, constants)
    except EvaluationError:
        return None
    return _literal(value, expression.span)


def _literal(value: Value, span: Span) -> Expression | None:
    if isinstance(value, str):
        return Template(parts=(value,), span=span)
    if value is None or isinstance(value, bool | int | float):
        return Literal(value=value, span=span)
    return None


def _part(part: str | Expression, constants: Constants) -> str | Expression:
    if isinstance(part, str):
        return part
    folded = _folded(part, constants)
    if isinstance(folded, Literal):
        return render_text(folded.value)
    constant = folded.constant if isinstance(folded, Template) else None
    return folded if constant is None else constant


def _merged(parts: tuple[str | Expression, ...]) -> tuple[str | Expression, ...]:
    """Neighbouring pieces of text as one."""
    merged: list[str | Expression] = []
    for part in parts:
        if merged and isinstance(part, str) and isinstance(merged[-1], str):
            merged[-1] += part
        else:
            merged.append(part)
    return tuple(merged)


def _inside(value: Any, constants: Constants) -> Any:
    """An AST node, or a tuple of such, with the expressions in it folded; names of functions and attributes stay."""
    if isinstance(value, tuple):
        return tuple(
            _folded(item, constants) if isinstance(item, Expression) else _inside(item, constants) for item in value
        )
    if not isinstance(value, AstNode):
        return value
    changes: dict[str, Any] = {}
    for item in fields(value):
        held = getattr(value, item.name)
        if item.name in ("span", "function"):
            continue
        changes[item.name] = _folded(held, constants) if isinstance(held, Expression) else _inside(held, constants)
    return replace(value, **changes)
