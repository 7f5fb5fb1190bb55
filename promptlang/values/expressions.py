"""Evaluates expressions. Bounded in steps and in the size of what it makes, and without a way to reach
Python's own objects."""

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from promptlang.diagnostics.source import Span
from promptlang.grammar.shapes import describe
from promptlang.syntax import ast
from promptlang.values.budget import COPIED_PER_STEP, DEFAULT_LIMITS, Budget, Limits, Refused
from promptlang.values.builtins import FUNCTIONS, METHODS
from promptlang.values.types import field_shape, fits
from promptlang.values.values import Answered, Parts, RecordType, RecordValue, Value, render_text, type_name

MOST_INTEGER_BITS = 4096


class EvaluationError(Exception):
    """An expression that has no value.

    Args:
        message: why, in one sentence.
        span: which part of it.
    """

    def __init__(self, message: str, span: Span) -> None:
        super().__init__(message)
        self.message = message
        self.span = span


@dataclass(frozen=True, kw_only=True)
class Given(ast.Expression):
    """A value that is there already: that of a Python program."""

    value: Any


def evaluate(expression: ast.Expression, scope: Mapping[str, Value], *, limits: Limits = DEFAULT_LIMITS) -> Value:
    """The value of an expression.

    Args:
        expression: calls of programs and tools must not be in it.
        scope: variables, consts, records (`RecordType`) and imports (`RecordValue`) by name.
        limits: what it may use.

    Raises:
        EvaluationError: it has no value, or takes too much.
    """
    evaluator = _Evaluator(scope, limits)
    value = evaluator.value(expression)
    evaluator.at(expression.span, evaluator.measure, value)
    return value


class _Evaluator(Budget):
    def __init__(self, scope: Mapping[str, Value], limits: Limits) -> None:
        super().__init__(limits)
        self._scope = scope
        self._locals: dict[str, Value] = {}

    def at(self, span: Span, compute: Callable[..., Value | None], *arguments: Any) -> Value:
        """The result of a computation that belongs to a place."""
        try:
            return compute(*arguments)
        except Refused as refused:
            raise EvaluationError(str(refused), span) from None
        except ZeroDivisionError:
            raise EvaluationError("division by zero", span) from None
        except OverflowError:
            raise EvaluationError("the result is too large a number", span) from None

    # Expressions -------------------------------------------------------------------------------------

    def value(self, expression: ast.Expression) -> Value:
        return self.at(expression.span, self._value, expression)

    def _value(self, expression: ast.Expression) -> Value:
        self.step()
        match expression:
            case ast.Literal(value=value) | Given(value=value):
                return value
            case ast.Template(parts=parts):
                return self._template(parts)
            case ast.Name(name=name):
                return self._name(name)
            case ast.Attribute(value=owner, name=name):
                return self._attribute(self.value(owner), name)
            case ast.Index(value=owner, index=index):
                return self._index(self.value(owner), self.value(index))
            case ast.Slice():
                return self._slice(expression)
            case ast.Unary(operator=symbol, operand=operand):
                return self._unary(symbol, self.value(operand))
            case ast.Logic(operator=symbol, operands=operands):
                return self._logic(symbol, operands)
            case ast.Arithmetic():
                return self._arithmetic(expression)
            case ast.Comparison(first=first_operand, rest=rest):
                return self._comparison(first_operand, rest)
            case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
                return self.value(then if self.value(condition) else otherwise)
            case ast.ListDisplay(items=items):
                self.make_items(len(items))
                return [self.value(item) for item in items]
            case ast.DictDisplay(items=items):
                return self._dict(items)
            case ast.Comprehension():
                return self._comprehension(expression)
            case ast.CallExpression():
                return self._call(expression)
        raise AssertionError(f"no evaluation for {type(expression).__name__}")

    def _template(self, parts: tuple[str | ast.Expression, ...]) -> str:
        texts = [part if isinstance(part, str) else self.text(self.value(part)) for part in parts]
        self.make(sum(map(len, texts)))
        return "".join(texts)

    def _name(self, name: str) -> Value:
        if name in self._locals:
            return self._locals[name]
        if name in self._scope:
            return self._scope[name]
        raise Refused(f"`{name}` has no value here")

    def _attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Answered) and name in owner.extras:
            return owner.extras[name]
        if isinstance(owner, Parts) and name in owner.part_names():
            return owner.part(name)
        hint = f"; write `[{name!r}]` for a key" if isinstance(owner, dict) else ""
        raise Refused(f"{type_name(owner)} has no `{name}`{hint}")

    def _index(self, owner: Value, index: Value) -> Value:
        if isinstance(owner, dict):
            if not isinstance(index, str) or index not in owner:
                raise Refused(f"the dict has no key {render_text(index)!r}")
            return owner[index]
        if not isinstance(owner, str | list):
            raise Refused(f"{type_name(owner)} has no items")
        if not isinstance(index, int):
            raise Refused(f"an index is an int, not {type_name(index)}")
        if not -len(owner) <= index < len(owner):
            raise Refused(f"index {index} is out of range: the {type_name(owner)} has length {len(owner)}")
        return owner[index]

    def _slice(self, expression: ast.Slice) -> Value:
        owner = self.value(expression.value)
        start, stop, step = (self._bound(part) for part in (expression.start, expression.stop, expression.step))
        if not isinstance(owner, str | list):
            raise Refused(f"{type_name(owner)} can't be sliced")
        if step == 0:
            raise Refused("a slice's step can't be 0")
        result = owner[start:stop:step]
        self._make_times(result, 1)
        return result

    def _bound(self, expression: ast.Expression | None) -> int | None:
        bound = None if expression is None else self.value(expression)
        if bound is not None and not isinstance(bound, int):
            raise Refused(f"a slice's bounds are ints, not {type_name(bound)}")
        return bound

    def _unary(self, symbol: str, operand: Value) -> Value:
        if symbol == "not":
            return not operand
        if not isinstance(operand, int | float):
            raise Refused(f"`{symbol}` needs a number, not {type_name(operand)}")
        return -operand if symbol == "-" else +operand

    def _logic(self, symbol: str, operands: tuple[ast.Expression, ...]) -> Value:
        self.step(len(operands) - 2)
        result = self.value(operands[0])
        for operand in operands[1:]:
            if bool(result) != (symbol == "and"):
                break
            result = self.value(operand)
        return result

    def _arithmetic(self, expression: ast.Arithmetic) -> Value:
        self.step(len(expression.rest) - 1)
        left = self.value(expression.first)
        for number, (symbol, operand) in enumerate(expression.rest):
            left = self.at(expression.span_to(number), self._binary, symbol, left, self.value(operand))
        return left

    def _binary(self, symbol: str, left: Value, right: Value) -> Value:
        if isinstance(left, int | float) and isinstance(right, int | float):
            return self._number(symbol, left, right)
        if symbol == "+" and isinstance(left, str) and isinstance(right, str):
            self.make(len(left) + len(right))
            return left + right
        if symbol == "+" and isinstance(left, list) and isinstance(right, list):
            self.make_items(len(left) + len(right))
            return left + right
        if symbol == "*" and isinstance(left, str | list) and isinstance(right, int):
            self._make_times(left, right)
            return left * right
        if symbol == "*" and isinstance(left, int) and isinstance(right, str | list):
            self._make_times(right, left)
            return left * right
        hint = (
            "; `${...}` puts a value into text"
            if symbol == "+" and (isinstance(left, str) or isinstance(right, str))
            else ""
        )
        raise Refused(f"`{symbol}` can't take {type_name(left)} and {type_name(right)}{hint}")

    def _make_times(self, value: str | list[Value], times: int) -> None:
        (self.make if isinstance(value, str) else self.make_items)(len(value) * max(0, times))

    def _number(self, symbol: str, left: int | float, right: int | float) -> Value:
        if symbol == "**" and isinstance(left, int) and isinstance(right, int) and right > 0:
            self._check_bits(left.bit_length() * right)
        result: int | float | complex = _ARITHMETIC[symbol](left, right)
        if isinstance(result, complex):
            raise Refused("the result is no real number")
        if isinstance(result, int):
            self._check_bits(result.bit_length())
        elif not math.isfinite(result):
            raise OverflowError
        return result

    def _check_bits(self, bits: int) -> None:
        if bits > MOST_INTEGER_BITS:
            raise OverflowError

    def _comparison(self, first: ast.Expression, rest: tuple[tuple[str, ast.Expression], ...]) -> bool:
        left = self.value(first)
        for symbol, expression in rest:
            right = self.value(expression)
            if not self._holds(symbol, left, right):
                return False
            left = right
        return True

    def _holds(self, symbol: str, left: Value, right: Value) -> bool:
        match symbol:
            case "==" | "!=":
                self.compare(left)
                return (left == right) == (symbol == "==")
            case "in" | "not in":
                return self._contains(right, left) == (symbol == "in")
        self.compare(left)
        if not _are_ordered(left, right):
            raise Refused(f"`{symbol}` can't compare {type_name(left)} and {type_name(right)}")
        return bool(_ORDER[symbol](left, right))

    def _contains(self, container: Value, item: Value) -> bool:
        if isinstance(container, str) and isinstance(item, str):
            self.step(len(container) // 1000)
            return item in container
        if isinstance(container, dict):
            return isinstance(item, str) and item in container
        if isinstance(container, list):
            self.compare(item, len(container))
            return item in container
        raise Refused(f"`in` can't look for {type_name(item)} in {type_name(container)}")

    def _dict(self, items: tuple[tuple[ast.Expression, ast.Expression], ...]) -> dict[str, Value]:
        self.make_items(len(items))
        result: dict[str, Value] = {}
        for key_expression, value_expression in items:
            key = self.value(key_expression)
            if not isinstance(key, str):
                raise EvaluationError(f"a key is a str, not {type_name(key)}", key_expression.span)
            result[key] = self.value(value_expression)
        return result

    def _comprehension(self, expression: ast.Comprehension) -> list[Value]:
        items = self.items(self.value(expression.iterable))
        outer = self._locals
        result = []
        try:
            for item in items:
                self.step()
                self._locals = outer | self._unpacked(expression.targets, item)
                if expression.condition is None or self.value(expression.condition):
                    self.make_items(1)
                    result.append(self.value(expression.item))
        finally:
            self._locals = outer
        return result

    def _unpacked(self, targets: tuple[str, ...], item: Value) -> dict[str, Value]:
        if len(targets) == 1:
            return {targets[0]: item}
        if not isinstance(item, list) or len(item) != len(targets):
            raise Refused(f"{type_name(item)} can't be unpacked into {len(targets)} names")
        return dict(zip(targets, item, strict=True))

    def items(self, value: Value) -> list[Value]:
        """What a loop over a value sees."""
        if isinstance(value, str | list | dict):
            self.step(len(value) // COPIED_PER_STEP)
            return list(value)
        raise Refused(f"{type_name(value)} can't be looped over")

    # Calls -------------------------------------------------------------------------------------------

    def _call(self, call: ast.CallExpression) -> Value:
        positional = [self.value(argument.value) for argument in call.arguments if argument.name is None]
        named = {argument.name: self.value(argument.value) for argument in call.arguments if argument.name is not None}
        match call.function:
            case ast.Name(name=name):
                record = self._locals.get(name, self._scope.get(name))
                if isinstance(record, RecordType):
                    return self._record(record, positional, named)
                if name in FUNCTIONS:
                    return FUNCTIONS[name].call(self, positional, named)
                raise Refused(f"`{name}` can't be called in an expression")
            case ast.Attribute(value=owner_expression, name=name):
                return self._method(self.value(owner_expression), name, positional, named)
        raise Refused("only functions, methods and records can be called")

    def _method(self, owner: Value, name: str, positional: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(owner, Parts) and name in owner.part_names():
            record = owner.part(name)
            if isinstance(record, RecordType):
                return self._record(record, positional, named)
        for kind in (str, list, dict):
            if isinstance(owner, kind) and name in METHODS[kind]:
                return METHODS[kind][name].call(self, [owner, *positional], named, is_method=True)
        raise Refused(f"{type_name(owner)} has no method `{name}`")

    def _record(self, record: RecordType, positional: list[Value], named: dict[str, Value]) -> RecordValue:
        shape = record.shape
        names = [field.name for field in shape.fields]
        if len(positional) > len(names):
            raise Refused(f"{shape.name} has {len(names)} fields, not {len(positional)}")
        given = dict(zip(names, positional, strict=False))
        wrong = next((name for name in named if name not in names or name in given), None)
        if wrong is not None:
            raise Refused(
                f"{shape.name} has no field `{wrong}`" if wrong not in names else f"the field `{wrong}` is given twice"
            )
        values = {**record.defaults, **given, **named}
        for field in shape.fields:
            if field.name not in values:
                raise Refused(f"{shape.name} needs `{field.name}`")
            if not fits(field_shape(shape, field.name), values[field.name]):
                raise Refused(
                    f"`{field.name}` of {shape.name} must be {describe(field.shape)}, not {_short(values[field.name])}"
                )
        return RecordValue(shape.name, {name: values[name] for name in names})


_ARITHMETIC: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _are_ordered(left: Value, right: Value) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        different = next(((a, b) for a, b in zip(left, right, strict=False) if a != b), None)
        return different is None or _are_ordered(*different)
    both_numbers = isinstance(left, int | float) and isinstance(right, int | float)
    return both_numbers or (isinstance(left, str) and isinstance(right, str))


def _short(value: Value) -> str:
    text = render_text(value)
    text = f'"{text}"' if isinstance(value, str) else text
    return text if len(text) <= 60 else "".join(islice(text, 60)) + "…"
