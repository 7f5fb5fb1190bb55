"""Types of expressions, and what is wrong with them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

from promptlang.checker.names import Names
from promptlang.checker.narrowing import narrowed, which_of
from promptlang.checker.operators import METHOD_RESULTS, Operators, function_result
from promptlang.checker.statics import (
    AnswerType,
    ArmsType,
    BranchesType,
    BranchType,
    Scope,
    Static,
    join,
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
from promptlang.syntax.walk import dotted_name, positional
from promptlang.values.builtins import FUNCTIONS, METHODS
from promptlang.values.types import field_shape, options_of, shape_of, union
from promptlang.values.values import RecordType

_STR, _INT, _FLOAT, _BOOL = shapes.Str(), shapes.Int(), shapes.Float(), shapes.Bool()
_BOUND = shapes.Union((_INT, shapes.Null()))
_KIND_TYPES: Mapping[str, type] = {"str": str, "list": list, "dict": dict}


@dataclass(frozen=True)
class Slot:
    """A parameter or a field that an argument may fill."""

    name: str
    shape: Shape
    is_required: bool


@dataclass
class Reads:
    """What a body reads.

    Attributes:
        names: variables.
        attributes: names after a dot.
        score_readers: selects (ids of their nodes) whose `.probs` or `.scores` it reads.
        reads_any_scores: whether it reads those of something whose select is not known.
    """

    names: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    score_readers: set[int] = field(default_factory=set)
    reads_any_scores: bool = False


class Inference:
    """Types of the expressions of one file.

    Args:
        names: of the file.
        diagnostics: what is wrong goes here.
    """

    def __init__(self, names: Names, diagnostics: list[Diagnostic]) -> None:
        self._names = names
        self._diagnostics = diagnostics
        self._operators = Operators(diagnostics)
        self.reads = Reads()

    def _report(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)

    def type_of(self, expression: ast.Expression, scope: Scope) -> Static:
        """The type of an expression; reports what is wrong with it."""
        match expression:
            case ast.Literal(value=value):
                return shape_of(value)
            case ast.Template(parts=parts):
                for part in parts:
                    if not isinstance(part, str):
                        self.type_of(part, scope)
                return _STR if expression.constant is None else shapes.Constant(expression.constant)
            case ast.Name(name=name):
                return self._name(name, expression.span, scope)
            case ast.Attribute():
                return self._attribute(expression, scope)
            case ast.Index(value=value, index=index):
                return self._operators.index(self.type_of(value, scope), self.type_of(index, scope), expression)
            case ast.Slice(value=value):
                for bound in (expression.start, expression.stop, expression.step):
                    if bound is not None:
                        self.expect(bound, _BOUND, "a slice's bound", scope, "int")
                return self._operators.sliced(self.type_of(value, scope))
            case ast.Unary(operator=operator, operand=operand):
                return self._operators.unary(operator, self.type_of(operand, scope), expression.span)
            case ast.Logic(operator=operator, operands=operands):
                return self._logic(operator, operands, scope)
            case ast.Arithmetic():
                return self._arithmetic(expression, scope)
            case ast.Comparison():
                return self._comparison(expression, scope)
            case ast.Conditional(condition=condition, then=then, otherwise=otherwise):
                self.type_of(condition, scope)
                holds, fails = (self.narrowed(condition, outcome, scope) for outcome in (True, False))
                return join(self.type_of(then, holds), self.type_of(otherwise, fails))
            case ast.ListDisplay(items=items):
                return _list_of([self.type_of(item, scope) for item in items], len(items))
            case ast.DictDisplay(items=items):
                return self._dict(items, scope)
            case ast.Comprehension():
                return self._comprehension(expression, scope)
            case ast.CallExpression():
                return self._call(expression, scope)
        raise AssertionError(f"no type for {type(expression).__name__}")

    def expect(
        self, expression: ast.Expression, wanted: Shape, what: str, scope: Scope, in_words: str | None = None
    ) -> None:
        """Report an expression that can't have a shape, which `in_words` may name."""
        found = self.type_of(expression, scope)
        if not may_be(found, wanted):
            self._report(faults.wrong_type(expression.span, what, in_words or describe(wanted), name_of(found)))

    def narrowed(self, condition: ast.Expression, holds: bool, scope: Scope) -> Scope:
        """The variables where a condition holds, or doesn't (see `narrowing.narrowed`)."""
        return narrowed(condition, holds, scope, self._names.constants)

    # Names -------------------------------------------------------------------------------------------

    def _name(self, name: str, span: Span, scope: Scope) -> Static:
        self.reads.names.add(name)
        variable = scope.get(name)
        if variable is not None:
            if not variable.is_certain:
                self._report(faults.not_assigned(span, name))
            return variable.type
        kind = self._names.kind(name)
        if kind == "const":
            return shape_of(self._names.constants.get(name))
        if kind is not None:
            self._report(faults.not_a_value(span, name, kind))
        elif not scope.is_open:
            self.unknown(name, span, scope)
        return None

    def unknown(self, name: str, span: Span, scope: Scope, others: Sequence[str] = ()) -> None:
        """Report a name that means nothing."""
        known = [*scope, *self._names.declared_as(ast.Const), "true", "false", "none", *others]
        self._report(faults.unknown_name(span, name, known))

    def _attribute(self, expression: ast.Attribute, scope: Scope) -> Static:
        imported = self._imported(expression, scope)
        if imported is not None:
            return self._constant(imported, expression.span)
        owner, name = self.type_of(expression.value, scope), expression.name
        self.reads.attributes.add(name)
        if name in ("probs", "scores"):
            self._reads_scores(owner)
        place = Span(expression.span.source, expression.span.end - len(name), expression.span.end)
        if name == "finish" and kind_of(owner) in ("str", "int", "float") and _may_be_answer(expression.value, scope):
            return shapes.Str()  # an answer has it; whether a text or a number is one shows when it runs
        match owner:
            case AnswerType() if name in owner.extras:
                return owner.extras[name]
            case BranchType():
                return (
                    owner.part(name)
                    if name in owner.part_names()
                    else self._no_part(place, "the branch", name, owner.part_names())
                )
            case ArmsType(arms=arms):
                return arms[name] if name in arms else self._no_part(place, "the fork", name, list(arms))
            case shapes.Record():
                names = [item.name for item in owner.fields]
                return field_shape(owner, name) if name in names else self._no_part(place, owner.name, name, names)
            case shapes.Union():
                return self._part_of_union(owner, expression, place)
        if owner is not None and kind_of(owner) is not None:
            self._no_part(place, name_of(owner), name, list(owner.extras) if isinstance(owner, AnswerType) else [])
        return None

    def _part_of_union(self, owner: shapes.Union, expression: ast.Attribute, span: Span) -> Static:
        """A field that every record of a union has; options of other kinds have none, which is told at run time."""
        options, name = options_of(owner), expression.name
        if any(isinstance(option, shapes.AnyJson | shapes.Schema) for option in options):
            return None
        records = [option for option in options if isinstance(option, shapes.Record)]
        having = [record for record in records if any(item.name == name for item in record.fields)]
        if not having:
            return self._no_part(
                span, name_of(owner), name, [item.name for record in records for item in record.fields]
            )
        if len(having) == len(records):
            return reduce(join, [static_of(field_shape(record, name)) for record in having])
        lacking = [record.name for record in records if record not in having]
        question = which_of(expression.value.span.text, having, records)
        self._report(faults.some_lack_field(span, name, [record.name for record in having], lacking, question))
        return None

    def _no_part(self, span: Span, owner: str, name: str, known: list[str]) -> Static:
        self._report(faults.unknown_field(span, owner, name, known))
        return None

    def _reads_scores(self, owner: Static) -> None:
        if isinstance(owner, AnswerType):
            self.reads.score_readers |= owner.selects
        elif owner is None:
            self.reads.reads_any_scores = True

    def _imported(self, expression: ast.Expression, scope: Scope) -> str | None:
        """`library.NAME`, where the expression is a name of an imported file."""
        name = dotted_name(expression)
        owner = None if name is None else name.partition(".")[0]
        return name if owner in self._names.imports and owner not in scope and name != owner else None

    def _constant(self, name: str, span: Span) -> Static:
        owner, _, inner = name.partition(".")
        imported = self._names.imports[owner]
        kind = self._names.kind(name)
        if kind == "const":
            return shape_of(imported.constants.get(inner))
        if kind is None:
            self._report(faults.unknown_field(span, f"`{owner}`", inner, imported.declared))
        else:
            self._report(faults.not_a_value(span, name, kind))
        return None

    # Operators ---------------------------------------------------------------------------------------

    def _logic(self, operator: str, operands: Sequence[ast.Expression], scope: Scope) -> Static:
        """An operand is worked out where those before it hold (`and`), or don't (`or`)."""
        types = list[Static]()
        for operand in operands:
            types.append(self.type_of(operand, scope))
            scope = self.narrowed(operand, operator == "and", scope)
        return reduce(join, types)

    def _arithmetic(self, expression: ast.Arithmetic, scope: Scope) -> Static:
        left = self.type_of(expression.first, scope)
        for number, (operator, operand) in enumerate(expression.rest):
            left = self._operators.binary(operator, left, self.type_of(operand, scope), expression.span_to(number))
        return left

    def _comparison(self, expression: ast.Comparison, scope: Scope) -> Static:
        left, left_expression = self.type_of(expression.first, scope), expression.first
        for operator, right_expression in expression.rest:
            right = self.type_of(right_expression, scope)
            span = Span(expression.span.source, left_expression.span.start, right_expression.span.end)
            self._operators.compare(operator, left, right, span)
            left, left_expression = right, right_expression
        return _BOOL

    def _dict(self, items: Sequence[tuple[ast.Expression, ast.Expression]], scope: Scope) -> Static:
        for key, _ in items:
            self.expect(key, _STR, "a key", scope)
        values = [self.type_of(value, scope) for _, value in items]
        known = [shape for value in values if (shape := shape_of_static(value)) is not None]
        return (
            shapes.Dict(union(known))
            if known and len(known) == len(values)
            else shapes.Dict(shapes.AnyJson())
            if not values
            else None
        )

    def _comprehension(self, expression: ast.Comprehension, scope: Scope) -> Static:
        inner = scope.inner()
        self.bind_items(expression.targets, expression.iterable, inner, scope)
        if expression.condition is not None:
            self.type_of(expression.condition, inner)
            inner = self.narrowed(expression.condition, True, inner)
        item = self.type_of(expression.item, inner)
        shape = None if isinstance(item, AnswerType) else shape_of_static(item)
        return None if shape is None else shapes.List(shape)

    def bind_items(self, targets: Sequence[str], iterable: ast.Expression, inner: Scope, scope: Scope) -> None:
        """Bind the targets of a loop to what it goes over."""
        over = self.type_of(iterable, scope)
        kind = kind_of(over)
        if kind is not None and kind not in ("str", "list", "dict", "branches"):
            self._report(faults.no_items(iterable.span, name_of(over)))
        match over:
            case BranchesType(branch=branch):
                item: Static = branch
            case shapes.List(item=shape):
                item = static_of(shape)
            case _:
                item = _STR if kind in ("str", "dict") else None
        for name in targets:
            inner.bind(name, item if len(targets) == 1 else None)

    # Calls -------------------------------------------------------------------------------------------

    def _call(self, call: ast.CallExpression, scope: Scope) -> Static:
        name = dotted_name(call.function)
        if name is not None and name.partition(".")[0] not in scope:
            kind = self._names.kind(name)
            if kind in ("program", "tool"):
                self._report(faults.call_inside_expression(call.span, name))
                return self._arguments_only(call, scope)
            if kind == "record":
                return self._record(name, call, scope)
            if kind is not None:
                self._report(faults.not_callable(call.function.span, name, f"a {kind}"))
                return self._arguments_only(call, scope)
        if isinstance(call.function, ast.Attribute) and self._imported(call.function, scope) is None:
            return self._method(call.function, call, scope)
        if isinstance(call.function, ast.Name):
            return self._function(call.function.name, call, scope)
        self.type_of(call.function, scope)
        return self._arguments_only(call, scope)

    def _arguments_only(self, call: ast.CallExpression, scope: Scope) -> Static:
        for argument in call.arguments:
            self.type_of(argument.value, scope)
        return None

    def _record(self, name: str, call: ast.CallExpression, scope: Scope) -> Static:
        found = self._names.find(name)
        assert found is not None
        record = found[0].constants.get(found[1].name)
        if not isinstance(record, RecordType):
            return self._arguments_only(call, scope)
        names = [item.name for item in record.shape.fields]
        slots = [Slot(item, field_shape(record.shape, item), item not in record.defaults) for item in names]
        self.arguments(name, slots, call.arguments, call.span, scope)
        return record.shape

    def arguments(
        self, what: str, slots: Sequence[Slot], arguments: Sequence[ast.Argument], span: Span, scope: Scope
    ) -> None:
        """Check the arguments of a call."""
        by_name = {slot.name: slot for slot in slots}
        filled: set[str] = set()
        count = len(positional(arguments))
        if count > len(slots):
            self._report(
                faults.wrong_count(
                    span, f"`{what}` takes {len(slots)} argument{'' if len(slots) == 1 else 's'}, not {count}"
                )
            )
        for index, argument in enumerate(arguments):
            name = argument.name or (slots[index].name if index < len(slots) else None)
            place = Span(
                argument.span.source,
                argument.span.start,
                argument.span.start + len(argument.name or argument.span.text),
            )
            if name is None:
                self.type_of(argument.value, scope)
            elif name not in by_name:
                self.type_of(argument.value, scope)
                self._report(faults.unknown_argument(place, f"`{what}`", name, by_name))
            elif name in filled:
                self._report(faults.argument_twice(place, f"`{what}`", name))
            else:
                filled.add(name)
                self.expect(argument.value, by_name[name].shape, f"`{name}` of `{what}`", scope)
        for slot in slots:
            if slot.is_required and slot.name not in filled:
                self._report(faults.missing_argument(span, f"`{what}`", slot.name))

    def _function(self, name: str, call: ast.CallExpression, scope: Scope) -> Static:
        types = [self.type_of(argument.value, scope) for argument in call.arguments]
        place = call.function.span
        if name not in FUNCTIONS:
            if name in scope:
                self.reads.names.add(name)
                self._report(faults.not_callable(place, name, "a variable"))
            elif name == "score":
                self._report(faults.call_inside_expression(call.span, name))
            elif self._names.kind(name) is None and not scope.is_open:
                callables = [
                    *FUNCTIONS,
                    *self._names.declared_as(ast.Record, ast.Program, ast.Tool),
                    "gen",
                    "select",
                    "score",
                ]
                self._report(faults.unknown_name(place, name, callables))
            return None
        function = FUNCTIONS[name]
        self._check_call(call, function.wrong_count(len(positional(call.arguments))), name, function.named)
        return function_result(name, types)

    def _check_call(self, call: ast.CallExpression, wrong: str | None, name: str, named: Sequence[str]) -> None:
        if wrong is not None:
            self._report(faults.wrong_count(call.span, wrong))
        for argument in call.arguments:
            if argument.name is not None and argument.name not in named:
                self._report(faults.unknown_argument(argument.span, f"`{name}`", argument.name, named))

    def _method(self, function: ast.Attribute, call: ast.CallExpression, scope: Scope) -> Static:
        owner = self.type_of(function.value, scope)
        self._arguments_only(call, scope)
        kind = kind_of(owner)
        place = Span(call.span.source, function.span.end - len(function.name), function.span.end)
        if kind is None:
            if not any(function.name in methods for methods in METHODS.values()):
                self._report(
                    faults.unknown_field(
                        place, "no value", function.name, [name for methods in METHODS.values() for name in methods]
                    )
                )
            return None
        methods = METHODS[_KIND_TYPES[kind]] if kind in _KIND_TYPES else METHODS[list] if kind == "branches" else {}
        if function.name not in methods:
            self._report(
                faults.unknown_field(place, f"a {kind}" if kind != "int" else "an int", function.name, methods)
            )
            return None
        self._check_call(call, methods[function.name].wrong_count(len(positional(call.arguments))), function.name, ())
        return METHOD_RESULTS.get(function.name)


def _may_be_answer(expression: ast.Expression, scope: Scope) -> bool:
    """Whether a value may be what the model gave, and so have more to tell: no argument, and nothing written out."""
    match expression:
        case ast.Name(name=name):
            variable = scope.get(name)
            return variable is not None and not variable.is_argument
        case ast.Literal() | ast.Template():
            return False
    return True


def _list_of(items: list[Static], count: int) -> Static:
    known = [
        shape for item in items if not isinstance(item, AnswerType) and (shape := shape_of_static(item)) is not None
    ]
    if len(known) < len(items):
        return None
    return shapes.List(union(known) if known else shapes.AnyJson(), count, count)
