"""A prompt read from its start to its first answer, without running it: which text is fixed, and what differs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from promptlang.compiler.graph import (
    CallNode,
    ForNode,
    IfNode,
    JumpNode,
    LetNode,
    LogNode,
    Node,
    PinNode,
    Region,
    RequireNode,
    ScoreNode,
    TextNode,
    ToolNode,
    TurnNode,
    UseNode,
    WhileNode,
)
from promptlang.compiler.walk import inside
from promptlang.diagnostics.source import Span
from promptlang.syntax.ast import Expression, Template
from promptlang.syntax.walk import names_in
from promptlang.values.builtins import FUNCTIONS
from promptlang.values.expressions import EvaluationError, evaluate
from promptlang.values.values import Value, render_text

MOST_ROUNDS = 64
"""Rounds of a loop over known items that are read one by one."""

_READABLE = (
    TextNode,
    TurnNode,
    UseNode,
    LetNode,
    CallNode,
    ToolNode,
    ScoreNode,
    LogNode,
    PinNode,
    IfNode,
    ForNode,
    WhileNode,
    JumpNode,
    RequireNode,
)
"""What leaves no answer in the prompt."""


@dataclass(frozen=True)
class Passage:
    """A run of prompt text.

    Attributes:
        span: where it is written.
        text: what it says; "" where it is the same each time but not known yet; None where it differs.
    """

    span: Span
    text: str | None


@dataclass
class Reading:
    """Reads a prompt on behalf of those who may share it: the calls of a program, the branches of a fork, the rounds
    of a loop.

    Attributes:
        values: the variables whose value is known.
        varying: the variables whose value differs from one to the next. The others are the same for all.
        pieces: what was read.
    """

    values: dict[str, Value]
    varying: set[str]
    pieces: list[Passage] = field(default_factory=list)

    def region(self, region: Region) -> bool:
        """Read a region.

        Returns:
            Whether the prompt can be read on behind it: not past an answer, or what may leave the region.
        """
        return all(self._node(node) for node in region.nodes)

    def _node(self, node: Node) -> bool:
        match node:
            case TextNode(text=text):
                self._text(text)
            case TurnNode(body=body) | RequireNode(body=body):
                return self.region(body)
            case UseNode():
                return self._use(node)
            case LetNode(target=target, value=value):
                self.assign(target, value, self)
            case CallNode() | ToolNode() | ScoreNode():
                self._vary(node)
            case LogNode() | PinNode():
                pass
            case IfNode():
                return self._if(node)
            case ForNode():
                return self._for(node)
            case _:
                return self._skip(node)
        return True

    # Text ---------------------------------------------------------------------------------------------------

    def _text(self, template: Template) -> None:
        for index, part in enumerate(template.parts):
            if isinstance(part, str):
                self.pieces.append(Passage(_span_of_literal(template, index), part))
            elif self._differs(part):
                self.pieces.append(Passage(_span_of_hole(part), None))
            else:
                known = self.value(part)
                self.pieces.append(Passage(_span_of_hole(part), "" if known is None else render_text(known[0])))

    # Variables ----------------------------------------------------------------------------------------------

    def _differs(self, *expressions: Expression) -> bool:
        return not self.varying.isdisjoint(names_in(expressions))

    def value(self, expression: Expression) -> tuple[Value] | None:
        """An expression's value in a tuple; None where it is not known."""
        if not all(name in self.values or name in FUNCTIONS for name in names_in(expression)):
            return None
        try:
            return (evaluate(expression, self.values),)
        except EvaluationError:
            return None

    def assign(self, name: str, expression: Expression, scope: "Reading") -> None:
        """Bind a name to what an expression means in a scope."""
        differs, known = scope._differs(expression), scope.value(expression)
        self._forget(name)
        if differs:
            self.varying.add(name)
        elif known is not None:
            self.values[name] = known[0]

    def _forget(self, name: str) -> None:
        self.values.pop(name, None)
        self.varying.discard(name)

    def _vary(self, node: Node) -> None:
        for name in node.writes:
            self._forget(name)
            self.varying.add(name)

    # What holds other nodes ---------------------------------------------------------------------------------

    def _use(self, node: UseNode) -> bool:
        inner = Reading(dict(node.constants), set(), self.pieces)
        for parameter in node.parameters:
            given = node.arguments.get(parameter.name)
            default = Reading(dict(node.constants), set())
            value = given if given is not None else parameter.default
            assert value is not None
            inner.assign(parameter.name, value, default if given is None else self)
        return inner.region(node.body)

    def _if(self, node: IfNode) -> bool:
        for condition, body in zip(node.conditions, node.bodies, strict=True):
            known = None if self._differs(condition) else self.value(condition)
            if known is None:
                return self._skip(node)
            if known[0]:
                return self.region(body)
        return self.region(node.otherwise)

    def _for(self, node: ForNode) -> bool:
        known = None if self._differs(node.iterable) else self.value(node.iterable)
        items: Any = None if known is None else known[0]
        jumps = any(isinstance(inner, JumpNode) for inner in inside([node]))
        if not isinstance(items, list) or len(items) > MOST_ROUNDS or len(node.targets) > 1 or jumps:
            return self._skip(node)
        [target] = node.targets
        for item in items:
            self._forget(target)
            self.values[target] = item
            if not self.region(node.body):
                return False
        return True

    def _skip(self, node: Node) -> bool:
        """Pass over a node whose course is not known; not over an answer."""
        nodes = list(inside([node]))
        if not all(isinstance(each, _READABLE) for each in nodes) or isinstance(node, JumpNode):
            return False
        differs = any(not self.varying.isdisjoint(each.reads) for each in nodes)
        if any(isinstance(each, TextNode) for each in nodes):
            self.pieces.append(Passage(node.span, None if differs else ""))
        for each in nodes:
            for name in each.writes:
                self._forget(name)
            if differs:
                self.varying.update(each.writes)
        return True


def known_constants(constants: Mapping[str, Value], *bound: str) -> dict[str, Value]:
    """The constants that no variable hides."""
    return {name: value for name, value in constants.items() if name not in bound}


def _span_of_hole(expression: Expression) -> Span:
    """A `${...}` with all that belongs to it."""
    text, span = expression.span.source.text, expression.span
    return Span(span.source, text.rindex("${", 0, span.start), text.index("}", span.end) + 1)


def _span_of_literal(template: Template, index: int) -> Span:
    """Where a fixed part of a string stands: between the holes beside it, without the white space at its start."""
    source, start, end = template.span.source, template.span.start, template.span.end
    before, after = template.parts[max(0, index - 1)], template.parts[min(index + 1, len(template.parts) - 1)]
    if isinstance(before, Expression):
        start = _span_of_hole(before).end
    if isinstance(after, Expression):
        end = _span_of_hole(after).start
    text = source.text[start:end]
    return Span(source, start + len(text) - len(text.lstrip()), end)
