"""The abstract syntax tree: what a program says, with the span where it says it.

Nodes are frozen; two nodes are equal when they say the same, wherever they stand (spans don't take part).
"""

import re
from dataclasses import dataclass, field
from typing import Literal as OneOf

from promptlang.diagnostics.source import Source, Span

_CLOSING = re.compile(r"(?:\s*\))*")


@dataclass(frozen=True, kw_only=True)
class AstNode:
    """Anything that stands somewhere in a source."""

    span: Span = field(repr=False, compare=False)


# Expressions -----------------------------------------------------------------------------------------


class Expression(AstNode):
    """Evaluated by our own evaluator; never calls a model."""


@dataclass(frozen=True, kw_only=True)
class Literal(Expression):
    """A number, `true`, `false` or `none`. (Every string is a `Template`, even without holes.)"""

    value: int | float | bool | None


@dataclass(frozen=True, kw_only=True)
class Template(Expression):
    """A string: literal pieces (escapes resolved, dedented) and interpolated expressions, in order."""

    parts: tuple[str | Expression, ...]

    @property
    def constant(self) -> str | None:
        """The text, where nothing is interpolated; else None."""
        return "".join(map(str, self.parts)) if all(isinstance(part, str) for part in self.parts) else None


@dataclass(frozen=True, kw_only=True)
class Name(Expression):
    name: str


@dataclass(frozen=True, kw_only=True)
class Attribute(Expression):
    value: Expression
    name: str


@dataclass(frozen=True, kw_only=True)
class Index(Expression):
    value: Expression
    index: Expression


@dataclass(frozen=True, kw_only=True)
class Slice(Expression):
    """`value[start:stop:step]`."""

    value: Expression
    start: Expression | None
    stop: Expression | None
    step: Expression | None


@dataclass(frozen=True, kw_only=True)
class Unary(Expression):
    operator: OneOf["-", "+", "not"]
    operand: Expression


@dataclass(frozen=True, kw_only=True)
class Arithmetic(Expression):
    """Operators that bind alike, from left to right: `first op1 second op2 third`. (`**` goes from right to left, so it
    has one operator.)"""

    first: Expression
    rest: tuple[tuple[OneOf["+", "-", "*", "/", "//", "%", "**"], Expression], ...]

    def span_to(self, number: int) -> Span:
        """Where the operations up to one stand, which is counted from 0: to the end of its operand and the brackets
        around that."""
        if number == len(self.rest) - 1:
            return self.span
        closing = _CLOSING.match(self.span.source.text, self.rest[number][1].span.end)
        assert closing is not None
        return Span(self.span.source, self.span.start, closing.end())


@dataclass(frozen=True, kw_only=True)
class Logic(Expression):
    """`first and second and third`, or the same with `or`."""

    operator: OneOf["and", "or"]
    operands: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True)
class Comparison(Expression):
    """A chain, as in Python: `first op1 second op2 third`."""

    first: Expression
    rest: tuple[tuple[OneOf["==", "!=", "<", "<=", ">", ">=", "in", "not in"], Expression], ...]


@dataclass(frozen=True, kw_only=True)
class Conditional(Expression):
    """`then if condition else otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, kw_only=True)
class ListDisplay(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True, kw_only=True)
class DictDisplay(Expression):
    items: tuple[tuple[Expression, Expression], ...]


@dataclass(frozen=True, kw_only=True)
class Comprehension(Expression):
    """`[item for target in iterable if condition]` (one `for`, at most one `if`); `targets` has more than one
    name where the
    loop unpacks."""

    item: Expression
    targets: tuple[str, ...]
    iterable: Expression
    condition: Expression | None


@dataclass(frozen=True, kw_only=True)
class Argument(AstNode):
    """An argument of a call; `name` is None where it is positional."""

    name: str | None
    value: Expression


@dataclass(frozen=True, kw_only=True)
class CallExpression(Expression):
    """`function(arguments)`: a builtin, a method (`function` is an Attribute), a record, a tool or a program.

    A program or tool call stands only as a statement or as the whole right side of `=` (the checker holds
    that).
    """

    function: Expression
    arguments: tuple[Argument, ...]


# Types -----------------------------------------------------------------------------------------------


class TypeExpression(AstNode):
    """A type as written."""


@dataclass(frozen=True, kw_only=True)
class NamedType(TypeExpression):
    """`str`, `int`, `float`, `bool`, `none`, `json`, or a declared name (`module.Name` for an imported
    one)."""

    name: str


@dataclass(frozen=True, kw_only=True)
class LiteralType(TypeExpression):
    """`"a"`, `3`, `true`."""

    value: str | int | float | bool


@dataclass(frozen=True, kw_only=True)
class UnionType(TypeExpression):
    options: tuple[TypeExpression, ...]


@dataclass(frozen=True, kw_only=True)
class ListType(TypeExpression):
    """`list[item]`, `list[item, minimum..maximum]`."""

    item: TypeExpression
    minimum: int | None = None
    maximum: int | None = None


@dataclass(frozen=True, kw_only=True)
class DictType(TypeExpression):
    """`dict[str, value]`."""

    value: TypeExpression


@dataclass(frozen=True, kw_only=True)
class RangeType(TypeExpression):
    """`int in low..high`, `float in low..high`, both ends included."""

    base: OneOf["int", "float"]
    low: int | float
    high: int | float


@dataclass(frozen=True, kw_only=True)
class BoundedStr(TypeExpression):
    """`str(max=N)`, N in characters."""

    maximum: int


@dataclass(frozen=True, kw_only=True)
class PatternType(TypeExpression):
    """`/pattern/`."""

    pattern: str


@dataclass(frozen=True, kw_only=True)
class SchemaType(TypeExpression):
    """`schema "file.json"`, path relative to the program's file."""

    path: str


@dataclass(frozen=True, kw_only=True)
class GrammarType(TypeExpression):
    """`grammar "file.lark"`, path relative to the program's file."""

    path: str


# Statements ------------------------------------------------------------------------------------------


class Statement(AstNode):
    """A line of a block."""


Block = tuple[Statement, ...]


@dataclass(frozen=True, kw_only=True)
class Text(Statement):
    """`"text"`: extends the prompt. `value` is a Template."""

    value: Template


@dataclass(frozen=True, kw_only=True)
class Role(Statement):
    """`user:` and the like, or `role "tool":`: one chat turn."""

    role: str
    body: Block


class Answer(AstNode):
    """What extends the prompt with model output (`gen`, `select`) or asks the model about it (`score`)."""


@dataclass(frozen=True, kw_only=True)
class Gen(Answer):
    """`gen(TYPE?, option=...)`; `type` is None for free text. `options` holds the keyword arguments as
    written."""

    type: TypeExpression | None
    options: tuple[Argument, ...]


@dataclass(frozen=True, kw_only=True)
class Select(Answer):
    """`select(a, b, ...)` or `select(options=list)`; `choices` holds the positional ones, `options` the
    keyword arguments."""

    choices: tuple[Expression, ...]
    options: tuple[Argument, ...]


@dataclass(frozen=True, kw_only=True)
class Score(Answer):
    """`score(text)`."""

    text: Expression


@dataclass(frozen=True, kw_only=True)
class Ask(Statement):
    """`target = gen(...)`, or the answer alone (`target` is None)."""

    target: str | None
    answer: Answer


@dataclass(frozen=True, kw_only=True)
class Assign(Statement):
    """`target = expression`. Where `value` calls a program or a tool, this is that call."""

    target: str
    value: Expression


@dataclass(frozen=True, kw_only=True)
class Call(Statement):
    """`name(args)` alone on a line: a program or tool called for its effect."""

    call: CallExpression


@dataclass(frozen=True, kw_only=True)
class Use(Statement):
    """`use name(args)`: runs a fragment here."""

    name: str
    arguments: tuple[Argument, ...]


@dataclass(frozen=True, kw_only=True)
class If(Statement):
    """`if`/`elif` as (condition, body) pairs, and `else`."""

    branches: tuple[tuple[Expression, Block], ...]
    otherwise: Block


@dataclass(frozen=True, kw_only=True)
class For(Statement):
    targets: tuple[str, ...]
    iterable: Expression
    body: Block


@dataclass(frozen=True, kw_only=True)
class While(Statement):
    """`while condition limit N:`; `limit` is an expression, None for the default of 64 rounds."""

    condition: Expression
    limit: Expression | None
    body: Block


class Break(Statement):
    pass


class Continue(Statement):
    pass


class Pass(Statement):
    pass


class Pin(Statement):
    pass


@dataclass(frozen=True, kw_only=True)
class Arm(AstNode):
    """`arm name:` in a fork."""

    name: str
    body: Block


@dataclass(frozen=True, kw_only=True)
class ForkCount(Statement):
    """`fork N as b:`; `allow_none` says `or none`."""

    count: Expression
    name: str
    body: Block
    allow_none: bool = False


@dataclass(frozen=True, kw_only=True)
class ForkEach(Statement):
    """`fork x in xs as b:`."""

    targets: tuple[str, ...]
    iterable: Expression
    name: str
    body: Block
    allow_none: bool = False


@dataclass(frozen=True, kw_only=True)
class ForkArms(Statement):
    """`fork as b:` with arms."""

    name: str
    arms: tuple[Arm, ...]


@dataclass(frozen=True, kw_only=True)
class Beam(Statement):
    """`beam depth=D width=W branch=B by EXPR as paths:`."""

    depth: Expression
    width: Expression
    branch: Expression
    by: Expression
    name: str
    body: Block


@dataclass(frozen=True, kw_only=True)
class KeepBest(Statement):
    """`keep N by EXPR`."""

    count: Expression
    by: Expression


@dataclass(frozen=True, kw_only=True)
class KeepWhere(Statement):
    """`keep where COND`."""

    condition: Expression


@dataclass(frozen=True, kw_only=True)
class KeepFirst(Statement):
    """`keep first N`."""

    count: Expression


@dataclass(frozen=True, kw_only=True)
class Adopt(Statement):
    """`adopt branch`: `branch` is an Index (`b[0]`) or, for arms, an Attribute (`b.left`)."""

    branch: Expression


@dataclass(frozen=True, kw_only=True)
class Require(Statement):
    """`require COND else retry N`, optionally `else "message"`."""

    condition: Expression
    retries: Expression
    message: Expression | None


@dataclass(frozen=True, kw_only=True)
class Log(Statement):
    value: Expression


@dataclass(frozen=True, kw_only=True)
class Return(Statement):
    value: Expression


# Declarations ----------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Declaration(AstNode):
    """`doc` is the docstring or the `##` comment above; `name_span` is where the name stands."""

    name: str
    name_span: Span = field(repr=False, compare=False)
    doc: str | None = None


@dataclass(frozen=True, kw_only=True)
class Parameter(AstNode):
    """`name: type = default`; the type is `str` where none is written."""

    name: str
    type: TypeExpression
    default: Expression | None
    doc: str | None = None


@dataclass(frozen=True, kw_only=True)
class Program(Declaration):
    parameters: tuple[Parameter, ...]
    returns: TypeExpression | None
    body: Block


@dataclass(frozen=True, kw_only=True)
class Fragment(Declaration):
    parameters: tuple[Parameter, ...]
    body: Block


@dataclass(frozen=True, kw_only=True)
class Record(Declaration):
    """Fields are Parameters: a name, a type and perhaps a default."""

    fields: tuple[Parameter, ...]


@dataclass(frozen=True, kw_only=True)
class TypeAlias(Declaration):
    type: TypeExpression


@dataclass(frozen=True, kw_only=True)
class Const(Declaration):
    value: Expression


@dataclass(frozen=True, kw_only=True)
class Tool(Declaration):
    parameters: tuple[Parameter, ...]
    returns: TypeExpression | None


@dataclass(frozen=True, kw_only=True)
class Import(Declaration):
    """`import "path.pl" as name`; the file is read by the loader, not here."""

    path: str


@dataclass(frozen=True, kw_only=True)
class Module(AstNode):
    """A file: its docstring and its declarations, in order."""

    source: Source = field(repr=False, compare=False)
    doc: str | None
    declarations: tuple[Declaration, ...]
