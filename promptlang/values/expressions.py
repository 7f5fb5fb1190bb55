"""Evaluates expressions. Bounded in steps and in the size of what it makes, and without a way to reach
Python's own objects."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

from promptlang.diagnostics.source import Span
from promptlang.grammar.shapes import describe
from promptlang.syntax import ast
from promptlang.values.builtins import FUNCTIONS, METHODS, Work
from promptlang.values.types import field_shape, fits
from promptlang.values.values import Answered, Parts, RecordType, RecordValue, Value, render_text, type_name

MOST_INTEGER_BITS = 4096
MOST_DEPTH = 100
ITEM_SIZE = 16
COPIED_PER_STEP = 100
"""Items that are copied in the time of a step."""

COMPARED_PER_STEP = 1000
"""Characters that are compared in the time of a step; an item counts as 16."""


@dataclass(frozen=True)
class Limits:
    """What one evaluation may use.

    Attributes:
        steps: operations.
        size: characters made; an item of a list or dict counts as 16.
    """

    steps: int = 200_000
    size: int = 16_000_000


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


DEFAULT_LIMITS = Limits()


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
    evaluator.at(expression, lambda: evaluator.measure(value))
    return value


class _Refused(Exception):
    """Why an operation has no result; gets its place on the way out."""


class _Evaluator(Work):
    def __init__(self, scope: Mapping[str, Value], limits: Limits) -> None:
        self._scope = scope
        self._locals: dict[str, Value] = {}
        self._steps = limits.steps
        self._size = limits.size

    # Limits ------------------------------------------------------------------------------------------

    def at(self, expression: ast.Expression, compute: Callable[[], Value | None]) -> Value:
        """The result of a computation that belongs to `expression`."""
        try:
            return compute()
        except _Refused as refused:
            raise EvaluationError(str(refused), expression.span) from None
        except ZeroDivisionError:
            raise EvaluationError("division by zero", expression.span) from None
        except OverflowError:
            raise EvaluationError("the result is too large a number", expression.span) from None

    def refuse(self, message: str) -> Exception:
        return _Refused(message)

    def step(self, count: int = 1) -> None:
        self._steps -= count
        if self._steps < 0:
            raise _Refused("this takes too many steps")

    def make(self, size: int) -> None:
        self._size -= size
        if self._size < 0:
            raise _Refused("the result is too large")

    def make_items(self, count: int) -> None:
        self.make(ITEM_SIZE * count)

    def measure(self, value: Value, depth: int = 0) -> None:
        """Take the size of a whole value out of the budget; refuse one that nests too deeply."""
        if depth > MOST_DEPTH:
            raise _Refused(f"the value nests deeper than {MOST_DEPTH} levels")
        self.make(ITEM_SIZE + (len(value) if isinstance(value, str) else 0))
        for item in _inside(value):
            self.measure(item, depth + 1)

    def compare(self, value: Value, times: int = 1) -> None:
        """Use up what it takes to compare a whole value that often: with equals it takes longest."""
        before = self._size
        self.measure(value)
        self.step(times * (1 + (before - self._size) // COMPARED_PER_STEP))

    def text(self, value: Value) -> str:
        """The text that a value has in a prompt."""
        self.measure(value)
        try:
            return render_text(value)
        except TypeError as error:
            raise _Refused(str(error)) from None

    # Expressions -------------------------------------------------------------------------------------

    def value(self, expression: ast.Expression) -> Value:
        return self.at(expression, lambda: self._value(expression))

    def _value(self, expression: ast.Expression) -> Value:
        self.step()
        match expression:
            case ast.Literal(value=value):
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
            case ast.Binary(operator="and" | "or" as symbol, left=left, right=right):
                first = self.value(left)
                return self.value(right) if bool(first) == (symbol == "and") else first
            case ast.Binary(operator=symbol, left=left, right=right):
                return self._binary(symbol, self.value(left), self.value(right))
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
        raise _Refused(f"`{name}` has no value here")

    def _attribute(self, owner: Value, name: str) -> Value:
        if isinstance(owner, Answered) and name in owner.extras:
            return owner.extras[name]
        if isinstance(owner, Parts) and name in owner.part_names():
            return owner.part(name)
        hint = f"; write `[{name!r}]` for a key" if isinstance(owner, dict) else ""
        raise _Refused(f"{type_name(owner)} has no `{name}`{hint}")

    def _index(self, owner: Value, index: Value) -> Value:
        if isinstance(owner, dict):
            if not isinstance(index, str) or index not in owner:
                raise _Refused(f"the dict has no key {render_text(index)!r}")
            return owner[index]
        if not isinstance(owner, str | list):
            raise _Refused(f"{type_name(owner)} has no items")
        if not isinstance(index, int):
            raise _Refused(f"an index is an int, not {type_name(index)}")
        if not -len(owner) <= index < len(owner):
            raise _Refused(f"index {index} is out of range: the {type_name(owner)} has length {len(owner)}")
        return owner[index]

    def _slice(self, expression: ast.Slice) -> Value:
        owner = self.value(expression.value)
        start, stop, step = (self._bound(part) for part in (expression.start, expression.stop, expression.step))
        if not isinstance(owner, str | list):
            raise _Refused(f"{type_name(owner)} can't be sliced")
        if step == 0:
            raise _Refused("a slice's step can't be 0")
        result = owner[start:stop:step]
        self._make_times(result, 1)
        return result

    def _bound(self, expression: ast.Expression | None) -> int | None:
        bound = None if expression is None else self.value(expression)
        if bound is not None and not isinstance(bound, int):
            raise _Refused(f"a slice's bounds are ints, not {type_name(bound)}")
        return bound

    def _unary(self, symbol: str, operand: Value) -> Value:
        if symbol == "not":
            return not operand
        if not isinstance(operand, int | float):
            raise _Refused(f"`{symbol}` needs a number, not {type_name(operand)}")
        return -operand if symbol == "-" else +operand

    def _binary(self, symbol: str, left: Value, right: Value) -> Value:
        if isinstance(left, int | float) and isinstance(right, int | float):
            return self._arithmetic(symbol, left, right)
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
        raise _Refused(f"`{symbol}` can't take {type_name(left)} and {type_name(right)}{hint}")

    def _make_times(self, value: str | list[Value], times: int) -> None:
        (self.make if isinstance(value, str) else self.make_items)(len(value) * max(0, times))

    def _arithmetic(self, symbol: str, left: int | float, right: int | float) -> Value:
        if symbol == "**" and isinstance(left, int) and isinstance(right, int) and right > 0:
            self._check_bits(left.bit_length() * right)
        result: int | float | complex = _ARITHMETIC[symbol](left, right)
        if isinstance(result, complex):
            raise _Refused("the result is no real number")
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
            raise _Refused(f"`{symbol}` can't compare {type_name(left)} and {type_name(right)}")
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
        raise _Refused(f"`in` can't look for {type_name(item)} in {type_name(container)}")

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
            raise _Refused(f"{type_name(item)} can't be unpacked into {len(targets)} names")
        return dict(zip(targets, item, strict=True))

    def items(self, value: Value) -> list[Value]:
        """What a loop over a value sees."""
        if isinstance(value, str | list | dict):
            self.step(len(value) // COPIED_PER_STEP)
            return list(value)
        raise _Refused(f"{type_name(value)} can't be looped over")

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
                raise _Refused(f"`{name}` can't be called in an expression")
            case ast.Attribute(value=owner_expression, name=name):
                return self._method(self.value(owner_expression), name, positional, named)
        raise _Refused("only functions, methods and records can be called")

    def _method(self, owner: Value, name: str, positional: list[Value], named: dict[str, Value]) -> Value:
        if isinstance(owner, Parts) and name in owner.part_names():
            record = owner.part(name)
            if isinstance(record, RecordType):
                return self._record(record, positional, named)
        for kind in (str, list, dict):
            if isinstance(owner, kind) and name in METHODS[kind]:
                return METHODS[kind][name].call(self, [owner, *positional], named, is_method=True)
        raise _Refused(f"{type_name(owner)} has no method `{name}`")

    def _record(self, record: RecordType, positional: list[Value], named: dict[str, Value]) -> RecordValue:
        shape = record.shape
        names = [field.name for field in shape.fields]
        if len(positional) > len(names):
            raise _Refused(f"{shape.name} has {len(names)} fields, not {len(positional)}")
        given = dict(zip(names, positional, strict=False))
        wrong = next((name for name in named if name not in names or name in given), None)
        if wrong is not None:
            raise _Refused(
                f"{shape.name} has no field `{wrong}`" if wrong not in names else f"the field `{wrong}` is given twice"
            )
        values = {**record.defaults, **given, **named}
        for field in shape.fields:
            if field.name not in values:
                raise _Refused(f"{shape.name} needs `{field.name}`")
            if not fits(field_shape(shape, field.name), values[field.name]):
                raise _Refused(
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


def _inside(value: Value) -> Iterable[Value]:
    if isinstance(value, list):
        return value
    if isinstance(value, dict):
        return value.values()
    if isinstance(value, Parts):
        return [value.part(name) for name in value.part_names()]
    return ()


def _short(value: Value) -> str:
    text = render_text(value)
    text = f'"{text}"' if isinstance(value, str) else text
    return text if len(text) <= 60 else "".join(islice(text, 60)) + "…"
