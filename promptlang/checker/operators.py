"""Types of what operators, functions and methods make of values, and which values operators can't take."""

from collections.abc import Mapping, Sequence

from promptlang.checker.statics import (
    NUMBERS,
    BranchesType,
    Static,
    kind_of,
    may_be,
    name_of,
    shape_of_static,
    static_of,
)
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Span
from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape, describe
from promptlang.syntax import ast
from promptlang.values.types import assignable, options_of, union

_STR, _INT, _FLOAT, _BOOL = shapes.Str(), shapes.Int(), shapes.Float(), shapes.Bool()
_TEXTS = shapes.List(_STR)
_RESULTS: Mapping[str, Shape] = {
    **dict.fromkeys(("str", "json"), _STR),
    **dict.fromkeys(("bool", "any", "all"), _BOOL),
    **{"len": shapes.Int(0), "int": _INT, "float": _FLOAT, "range": shapes.List(_INT)},
}
METHOD_RESULTS: Mapping[str, Shape] = {
    **dict.fromkeys(("strip", "lstrip", "rstrip", "lower", "upper", "title", "replace", "join"), _STR),
    **dict.fromkeys(("split", "splitlines", "keys"), _TEXTS),
    **dict.fromkeys(("startswith", "endswith"), _BOOL),
    **dict.fromkeys(("find", "count", "index"), _INT),
}
_INDICES: Mapping[str, Shape] = {"dict": _STR, "str": _INT, "list": _INT, "branches": _INT}
_ORDERED = frozenset({"<", "<=", ">", ">="})


class Operators:
    """Types of operations, from those of their operands.

    Args:
        diagnostics: what is wrong goes here.
    """

    def __init__(self, diagnostics: list[Diagnostic]) -> None:
        self._diagnostics = diagnostics

    def _report(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)

    def index(self, owner: Static, index: Static, expression: ast.Index) -> Static:
        kind = kind_of(owner)
        wanted = _INDICES.get(kind or "")
        if wanted is None:
            if kind is not None:
                self._report(faults.no_items(expression.value.span, name_of(owner)))
            return None
        if not may_be(index, wanted):
            self._report(faults.wrong_type(expression.index.span, "this index", describe(wanted), name_of(index)))
        match owner:
            case BranchesType(branch=branch):
                return branch
            case shapes.List(item=item):
                return static_of(item)
            case shapes.Dict(value=value):
                return static_of(value)
        return _STR if kind == "str" else None

    def sliced(self, owner: Static) -> Static:
        if isinstance(owner, shapes.List):
            return shapes.List(owner.item)
        return _STR if kind_of(owner) == "str" else owner if isinstance(owner, BranchesType) else None

    def unary(self, operator: str, operand: Static, span: Span) -> Static:
        if operator == "not":
            return _BOOL
        kind = kind_of(operand)
        if kind is not None and kind not in NUMBERS:
            self._report(faults.wrong_type(span, f"the operand of `{operator}`", "a number", name_of(operand)))
        if isinstance(operand, shapes.Constant) and isinstance(operand.value, int | float):
            return shapes.Constant(-operand.value if operator == "-" else +operand.value)
        return _FLOAT if kind == "float" else _INT if kind in NUMBERS else None

    def binary(self, operator: str, left: Static, right: Static, span: Span) -> Static:
        kinds = (kind_of(left), kind_of(right))
        if None in kinds:
            return None
        if kinds[0] in NUMBERS and kinds[1] in NUMBERS:
            return _FLOAT if operator == "/" or "float" in kinds else None if operator == "**" else _INT
        match operator, *kinds:
            case "+", "str", "str":
                return _STR
            case "+", "list", "list":
                first, second = shape_of_static(left), shape_of_static(right)
                assert isinstance(first, shapes.List)
                assert isinstance(second, shapes.List)
                return shapes.List(union((first.item, second.item)))
            case "+", "branches", "branches":
                return None
            case ("*", ("str" | "list"), ("int" | "bool")) | ("*", ("int" | "bool"), ("str" | "list")):
                return self.sliced(left if kinds[0] in ("str", "list") else right)
        fills_text = operator == "+" and "str" in kinds
        self._report(faults.wrong_operands(span, operator, name_of(left), name_of(right), fills_text))
        return None

    def compare(self, operator: str, left: Static, right: Static, span: Span) -> None:
        kinds = (kind_of(left), kind_of(right))
        if None in kinds:
            return
        if operator in _ORDERED:
            comparable = (kinds[0] in NUMBERS and kinds[1] in NUMBERS) or (
                kinds[0] == kinds[1] and kinds[0] in ("str", "list")
            )
            if not comparable:
                self._report(faults.wrong_operands(span, operator, name_of(left), name_of(right)))
        elif operator in ("in", "not in"):
            if kinds[1] not in ("str", "list", "dict", "branches"):
                self._report(faults.no_items(span, name_of(right)))
        else:
            self._equal(left, right, span)

    def _equal(self, left: Static, right: Static, span: Span) -> None:
        """Report two values that can never be equal."""
        first, second = shape_of_static(left), shape_of_static(right)
        if first is not None and second is not None and not _overlap(first, second):
            self._report(faults.never_equal(span, describe(first), describe(second)))


def function_result(name: str, types: Sequence[Static]) -> Static:
    """The type of what a builtin function gives.

    Args:
        name: the function's.
        types: of its arguments.
    """
    if name in ("sorted", "reversed") and types and isinstance(types[0], shapes.List):
        return shapes.List(types[0].item)
    return _RESULTS.get(name)


def _overlap(first: Shape, second: Shape) -> bool:
    """Whether two shapes have a value in common, as far as that can be told."""
    return any(
        assignable(a, b) or assignable(b, a) or _is_number_twice(a, b)
        for a in options_of(first)
        for b in options_of(second)
    )


def _is_number_twice(first: Shape, second: Shape) -> bool:
    """Whether an int and a float may be the same number (`3 == 3.0`)."""
    kinds = {kind_of(first), kind_of(second)}
    return len(kinds) == 2 and kinds <= NUMBERS
