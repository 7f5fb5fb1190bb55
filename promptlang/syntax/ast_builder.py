"""Lark's tree to the AST. Bottom up and without recursion, so that depth costs nothing; a string's holes are
parsed on the way."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lark import Token, v_args
from lark.tree import Meta
from lark.visitors import Transformer_NonRecursive

from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Source, Span
from promptlang.syntax import ast
from promptlang.syntax.strings import Hole, read_string
from promptlang.syntax.walk import has_turns

MOST_DIGITS = 1000


@v_args(inline=True, meta=True)
class AstBuilder(Transformer_NonRecursive[Token, Any]):
    """One method a rule of the grammar.

    Args:
        source: where the tree comes from.
        diagnostics: what is wrong beyond the grammar goes here.
        parse_hole: parses the expression in a stretch of the source; None where it can't.
    """

    def __init__(
        self, source: Source, diagnostics: list[Diagnostic], parse_hole: Callable[[int, int], ast.Expression | None]
    ) -> None:
        super().__init__()
        self._source = source
        self._diagnostics = diagnostics
        self._parse_hole = parse_hole
        self._lines_in_strings: set[int] = set()

    # Places ------------------------------------------------------------------------------------------

    def _span(self, meta: Meta, body: Sequence[ast.AstNode] | None = None) -> Span:
        """From a rule's first character to its last; where it has a body, to the end of that (an empty one:
        of its first line)."""
        if body is None:
            return Span(self._source, meta.start_pos, meta.end_pos)
        line_end = self._source.text.find("\n", meta.start_pos)
        return Span(
            self._source, meta.start_pos, body[-1].span.end if body else line_end % (len(self._source.text) + 1)
        )

    def _token_span(self, token: Token) -> Span:
        return Span(self._source, token.start_pos or 0, token.end_pos or 0)

    def _report(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)

    def _line_of(self, offset: int) -> int:
        return self._source.position(offset).line

    def _comment_above(self, start: int) -> str | None:
        """The `##` lines right above a declaration."""
        lines: list[str] = []
        number = self._line_of(start) - 1
        while found := self._documentation(number):
            lines.append(found[1].rstrip())
            number -= 1
        return "\n".join(reversed(lines)) or None

    def _documentation(self, number: int) -> re.Match[str] | None:
        """The `##` comment that a line is; None where it isn't one."""
        if number < 1 or number in self._lines_in_strings:
            return None
        return re.fullmatch(r"[ \t]*## ?(.*)", self._source.line(number))

    # Files -------------------------------------------------------------------------------------------

    def file(self, meta: Meta, *items: Any) -> ast.Module:
        doc = next((item for item in items if isinstance(item, str)), None)
        declarations = tuple(item for item in items if isinstance(item, ast.Declaration))
        return ast.Module(
            span=Span(self._source, 0, len(self._source.text)), source=self._source, doc=doc, declarations=declarations
        )

    def statements(self, meta: Meta, *lines: ast.Statement | None) -> ast.Block:
        return _block(lines)

    def hole(self, meta: Meta, expression: ast.Expression) -> ast.Expression:
        return expression

    def docstring(self, meta: Meta, string: ast.Template) -> str:
        return self._constant(string, "a docstring")

    def broken(self, meta: Meta, *_: Any) -> None:
        return None

    broken_declaration = broken_field = broken

    # Declarations ------------------------------------------------------------------------------------

    def program(self, meta: Meta, name: Token, parameters: tuple[ast.Parameter, ...], *rest: Any) -> ast.Program:
        returns, body = rest if len(rest) == 2 else (None, rest[0])
        doc, body = self._documented(meta, body)
        place = self._declared(meta, name, doc, body)
        return ast.Program(parameters=parameters, returns=returns, body=body, **place)

    def fragment(self, meta: Meta, name: Token, parameters: tuple[ast.Parameter, ...], body: ast.Block) -> ast.Fragment:
        doc, body = self._documented(meta, body)
        return ast.Fragment(parameters=parameters, body=body, **self._declared(meta, name, doc, body))

    def _documented(self, meta: Meta, body: ast.Block) -> tuple[str | None, ast.Block]:
        """The docstring of a body, and the rest. In a body without turns the first string is prompt text."""
        comment = self._comment_above(meta.start_pos)
        if len(body) > 1 and isinstance(body[0], ast.Text) and body[0].value.constant is not None and has_turns(body):
            return comment or body[0].value.constant, body[1:]
        return comment, body

    def _declared(
        self, meta: Meta, name: Token, doc: str | None, body: Sequence[ast.AstNode] | None = None
    ) -> dict[str, Any]:
        return {"name": str(name), "name_span": self._token_span(name), "doc": doc, "span": self._span(meta, body)}

    def record(self, meta: Meta, name: Token, *fields: ast.Parameter | None) -> ast.Record:
        kept = tuple(field for field in fields if field is not None)
        return ast.Record(fields=kept, **self._declared(meta, name, self._comment_above(meta.start_pos), kept))

    def alias(self, meta: Meta, name: Token, type_: ast.TypeExpression) -> ast.TypeAlias:
        return ast.TypeAlias(type=type_, **self._declared(meta, name, self._comment_above(meta.start_pos)))

    def const(self, meta: Meta, name: Token, value: ast.Expression) -> ast.Const:
        return ast.Const(value=value, **self._declared(meta, name, self._comment_above(meta.start_pos)))

    def tool(
        self, meta: Meta, name: Token, parameters: tuple[ast.Parameter, ...], returns: ast.TypeExpression | None = None
    ) -> ast.Tool:
        place = self._declared(meta, name, self._comment_above(meta.start_pos))
        return ast.Tool(parameters=parameters, returns=returns, **place)

    def import_file(self, meta: Meta, path: ast.Template, name: Token) -> ast.Import:
        place = self._declared(meta, name, self._comment_above(meta.start_pos))
        return ast.Import(path=self._constant(path, "the path of an import"), **place)

    def name(self, meta: Meta, name: Token) -> Token:
        return name

    def returns(self, meta: Meta, type_: ast.TypeExpression) -> ast.TypeExpression:
        return type_

    def parameters(self, meta: Meta, *parameters: ast.Parameter) -> tuple[ast.Parameter, ...]:
        return parameters

    def parameter(
        self, meta: Meta, name: Token, type_: ast.TypeExpression | None, default: ast.Expression | None
    ) -> ast.Parameter:
        written = type_ or ast.NamedType(name="str", span=self._token_span(name))
        doc = self._comment_above(meta.start_pos) if self._is_first_on_line(meta) else None
        return ast.Parameter(name=str(name), type=written, default=default, doc=doc, span=self._span(meta))

    field = parameter

    def _is_first_on_line(self, meta: Meta) -> bool:
        line_start = self._source.text.rfind("\n", 0, meta.start_pos) + 1
        return not self._source.text[line_start : meta.start_pos].strip()

    # Statements --------------------------------------------------------------------------------------

    def body(self, meta: Meta, *lines: ast.Statement | None) -> ast.Block:
        return _block(lines)

    def expression_statement(self, meta: Meta, expression: ast.Expression) -> ast.Statement | None:
        if isinstance(expression, ast.Template):
            return ast.Text(value=expression, span=self._span(meta))
        if isinstance(expression, ast.CallExpression):
            return ast.Call(call=expression, span=self._span(meta))
        self._report(faults.does_nothing(expression.span, isinstance(expression, ast.Comparison)))
        return None

    def assign(self, meta: Meta, target: str, value: ast.Expression) -> ast.Assign:
        return ast.Assign(target=target, value=value, span=self._span(meta))

    def ask(self, meta: Meta, target: str, answer: ast.Answer) -> ast.Ask:
        return ast.Ask(target=target, answer=answer, span=self._span(meta))

    def ask_alone(self, meta: Meta, answer: ast.Answer) -> ast.Ask:
        return ast.Ask(target=None, answer=answer, span=self._span(meta))

    def target(self, meta: Meta, *_: Token) -> str:
        return self._source.text[meta.start_pos : meta.end_pos]

    def use(self, meta: Meta, name: str, arguments: tuple[ast.Argument, ...]) -> ast.Use:
        return ast.Use(name=name, arguments=arguments, span=self._span(meta))

    def keep_first(self, meta: Meta, count: ast.Expression) -> ast.KeepFirst:
        return ast.KeepFirst(count=count, span=self._span(meta))

    def keep_where(self, meta: Meta, condition: ast.Expression) -> ast.KeepWhere:
        return ast.KeepWhere(condition=condition, span=self._span(meta))

    def keep_best(self, meta: Meta, count: ast.Expression, by: ast.Expression) -> ast.KeepBest:
        return ast.KeepBest(count=count, by=by, span=self._span(meta))

    def adopt(self, meta: Meta, branch: ast.Expression) -> ast.Adopt:
        return ast.Adopt(branch=branch, span=self._span(meta))

    def require(
        self, meta: Meta, condition: ast.Expression, retries: ast.Expression, message: ast.Expression | None
    ) -> ast.Require:
        return ast.Require(condition=condition, retries=retries, message=message, span=self._span(meta))

    def log(self, meta: Meta, value: ast.Expression) -> ast.Log:
        return ast.Log(value=value, span=self._span(meta))

    def return_value(self, meta: Meta, value: ast.Expression) -> ast.Return:
        return ast.Return(value=value, span=self._span(meta))

    def pin(self, meta: Meta) -> ast.Pin:
        return ast.Pin(span=self._span(meta))

    def pass_by(self, meta: Meta) -> ast.Pass:
        return ast.Pass(span=self._span(meta))

    def break_loop(self, meta: Meta) -> ast.Break:
        return ast.Break(span=self._span(meta))

    def continue_loop(self, meta: Meta) -> ast.Continue:
        return ast.Continue(span=self._span(meta))

    def turn(self, meta: Meta, role: Token, body: ast.Block) -> ast.Role:
        return ast.Role(role=str(role), body=body, span=self._span(meta, body))

    def other_turn(self, meta: Meta, role: ast.Template, body: ast.Block) -> ast.Role:
        return ast.Role(role=self._constant(role, "the name of a role"), body=body, span=self._span(meta, body))

    def if_else(self, meta: Meta, condition: ast.Expression, body: ast.Block, *rest: Any) -> ast.If:
        branches = [(condition, body), *(part for part in rest if len(part) == 2)]
        otherwise = next((part[0] for part in rest if len(part) == 1), ())
        return ast.If(
            branches=tuple(branches), otherwise=otherwise, span=self._span(meta, otherwise or branches[-1][1])
        )

    def elif_part(self, meta: Meta, condition: ast.Expression, body: ast.Block) -> tuple[ast.Expression, ast.Block]:
        return condition, body

    def else_part(self, meta: Meta, body: ast.Block) -> tuple[ast.Block]:
        return (body,)

    def for_each(self, meta: Meta, targets: tuple[str, ...], iterable: ast.Expression, body: ast.Block) -> ast.For:
        return ast.For(targets=targets, iterable=iterable, body=body, span=self._span(meta, body))

    def while_loop(
        self, meta: Meta, condition: ast.Expression, limit: ast.Expression | None, body: ast.Block
    ) -> ast.While:
        return ast.While(condition=condition, limit=limit, body=body, span=self._span(meta, body))

    def fork_count(
        self, meta: Meta, count: ast.Expression, name: Token, allow_none: bool, body: ast.Block
    ) -> ast.ForkCount:
        return ast.ForkCount(count=count, name=str(name), body=body, allow_none=allow_none, span=self._span(meta, body))

    def fork_each(
        self,
        meta: Meta,
        targets: tuple[str, ...],
        iterable: ast.Expression,
        name: Token,
        allow_none: bool,
        body: ast.Block,
    ) -> ast.ForkEach:
        span = self._span(meta, body)
        return ast.ForkEach(
            targets=targets, iterable=iterable, name=str(name), body=body, allow_none=allow_none, span=span
        )

    def fork_arms(self, meta: Meta, name: Token, *arms: ast.Arm | None) -> ast.ForkArms:
        kept = tuple(arm for arm in arms if arm is not None)
        return ast.ForkArms(name=str(name), arms=kept, span=self._span(meta, kept))

    def beam(self, meta: Meta, *parts: Any) -> ast.Statement | None:
        *options, by, name, body = parts
        given = {option.name: option.value for option in options}
        span = self._span(meta, body)
        if sorted(given) != ["branch", "depth", "width"] or len(options) != 3:
            self._report(faults.beam_options(self._span(meta)))
            return None
        return ast.Beam(by=by, name=str(name), body=body, span=span, **given)

    def arm(self, meta: Meta, name: Token, body: ast.Block) -> ast.Arm:
        return ast.Arm(name=str(name), body=body, span=self._span(meta, body))

    def or_none(self, meta: Meta, *words: Token) -> bool:
        return bool(words)

    def targets(self, meta: Meta, *names: Token) -> tuple[str, ...]:
        return tuple(map(str, names))

    # Answers -----------------------------------------------------------------------------------------

    def gen(self, meta: Meta, *items: Any) -> ast.Gen:
        type_ = next((item for item in items if isinstance(item, ast.TypeExpression)), None)
        options = tuple(item for item in items if isinstance(item, ast.Argument))
        return ast.Gen(type=type_, options=options, span=self._span(meta))

    def select(self, meta: Meta, arguments: tuple[ast.Argument, ...]) -> ast.Select:
        choices = tuple(argument.value for argument in arguments if argument.name is None)
        options = tuple(argument for argument in arguments if argument.name is not None)
        return ast.Select(choices=choices, options=options, span=self._span(meta))

    def score(self, meta: Meta, text: ast.Expression) -> ast.Score:
        return ast.Score(text=text, span=self._span(meta))

    def option(self, meta: Meta, name: Token, value: ast.Expression) -> ast.Argument:
        return ast.Argument(name=str(name), value=value, span=self._span(meta))

    named_argument = beam_option = option

    # Types -------------------------------------------------------------------------------------------

    def union_type(self, meta: Meta, *options: ast.TypeExpression) -> ast.TypeExpression:
        return options[0] if len(options) == 1 else ast.UnionType(options=options, span=self._span(meta))

    def named_type(self, meta: Meta, name: str) -> ast.TypeExpression:
        return ast.NamedType(name=name, span=self._span(meta))

    def dotted(self, meta: Meta, *names: Token) -> str:
        return ".".join(names)

    def bounded_type(self, meta: Meta, name: Token, option: Token, bound: int | float) -> ast.TypeExpression:
        if (name, option) != ("str", "max") or not isinstance(bound, int) or bound < 0:
            self._report(
                faults.bad_type(self._span(meta), "only `str(max=N)` takes a bound like this, N a whole number")
            )
            return self._any(meta)
        return ast.BoundedStr(maximum=bound, span=self._span(meta))

    def generic_type(self, meta: Meta, name: Token, *items: ast.TypeExpression) -> ast.TypeExpression:
        match str(name), items:
            case "list", (item,):
                return ast.ListType(item=item, span=self._span(meta))
            case "dict", (ast.NamedType(name="str"), value):
                return ast.DictType(value=value, span=self._span(meta))
        self._report(
            faults.bad_type(self._span(meta), "types with brackets are `list[T]`, `list[T, 1..5]` and `dict[str, T]`")
        )
        return self._any(meta)

    def counted_type(
        self, meta: Meta, name: Token, item: ast.TypeExpression, low: int | float, high: int | float
    ) -> ast.TypeExpression:
        if name != "list" or not isinstance(low, int) or not isinstance(high, int) or not 0 <= low <= high:
            self._report(
                faults.bad_type(
                    self._span(meta), "bounds stand as in `list[T, 1..5]`: whole numbers, the lower one first"
                )
            )
            return self._any(meta)
        return ast.ListType(item=item, minimum=low, maximum=high, span=self._span(meta))

    def range_type(self, meta: Meta, base: Token, low: int | float, high: int | float) -> ast.TypeExpression:
        is_whole = isinstance(low, int) and isinstance(high, int)
        if base not in ("int", "float") or low > high or (base == "int" and not is_whole):
            self._report(
                faults.bad_type(self._span(meta), "ranges are `int in 1..5` and `float in 0..1`, the lower end first")
            )
            return self._any(meta)
        return ast.RangeType(base="int" if base == "int" else "float", low=low, high=high, span=self._span(meta))

    def _any(self, meta: Meta) -> ast.TypeExpression:
        return ast.NamedType(name="json", span=self._span(meta))

    def string_type(self, meta: Meta, string: ast.Template) -> ast.LiteralType:
        return ast.LiteralType(value=self._constant(string, "a type"), span=self._span(meta))

    def number_type(self, meta: Meta, value: int | float) -> ast.LiteralType:
        return ast.LiteralType(value=value, span=self._span(meta))

    def true_type(self, meta: Meta) -> ast.LiteralType:
        return ast.LiteralType(value=True, span=self._span(meta))

    def false_type(self, meta: Meta) -> ast.LiteralType:
        return ast.LiteralType(value=False, span=self._span(meta))

    def none_type(self, meta: Meta) -> ast.NamedType:
        return ast.NamedType(name="none", span=self._span(meta))

    def pattern_type(self, meta: Meta, token: Token) -> ast.PatternType:
        return ast.PatternType(pattern=token[1:-1].replace("\\/", "/"), span=self._span(meta))

    def schema_type(self, meta: Meta, path: ast.Template) -> ast.SchemaType:
        return ast.SchemaType(path=self._constant(path, "the path of a schema"), span=self._span(meta))

    def grammar_type(self, meta: Meta, path: ast.Template) -> ast.GrammarType:
        return ast.GrammarType(path=self._constant(path, "the path of a grammar"), span=self._span(meta))

    def signed(self, meta: Meta, *tokens: Token) -> int | float:
        value = self._number(tokens[-1])
        return -value if len(tokens) == 2 else value

    # Expressions -------------------------------------------------------------------------------------

    def conditional(
        self, meta: Meta, then: ast.Expression, condition: ast.Expression, otherwise: ast.Expression
    ) -> ast.Conditional:
        return ast.Conditional(condition=condition, then=then, otherwise=otherwise, span=self._span(meta))

    def logic(self, meta: Meta, *parts: Any) -> ast.Logic:
        return ast.Logic(operator=str(parts[1]), operands=parts[::2], span=self._span(meta))  # type: ignore[arg-type]

    def arithmetic(self, meta: Meta, first: ast.Expression, *rest: Any) -> ast.Arithmetic:
        return ast.Arithmetic(first=first, rest=_operations(map(str, rest[::2]), rest[1::2]), span=self._span(meta))

    def unary(self, meta: Meta, operator: Token, operand: ast.Expression) -> ast.Unary:
        return ast.Unary(operator=str(operator), operand=operand, span=self._span(meta))  # type: ignore[arg-type]

    def comparison(self, meta: Meta, first: ast.Expression, *rest: Any) -> ast.Comparison:
        return ast.Comparison(first=first, rest=_operations(rest[::2], rest[1::2]), span=self._span(meta))

    def comparator(self, meta: Meta, *tokens: Token) -> str:
        return " ".join(self._source.text[meta.start_pos : meta.end_pos].split())

    def attribute(self, meta: Meta, value: ast.Expression, name: Token) -> ast.Attribute:
        return ast.Attribute(value=value, name=str(name), span=self._span(meta))

    def index(self, meta: Meta, value: ast.Expression, index: ast.Expression) -> ast.Index:
        return ast.Index(value=value, index=index, span=self._span(meta))

    def slice(
        self,
        meta: Meta,
        value: ast.Expression,
        start: ast.Expression | None,
        stop: ast.Expression | None,
        step: ast.Expression | None = None,
    ) -> ast.Slice:
        return ast.Slice(value=value, start=start, stop=stop, step=step, span=self._span(meta))

    def call(self, meta: Meta, function: ast.Expression, arguments: tuple[ast.Argument, ...]) -> ast.CallExpression:
        return ast.CallExpression(function=function, arguments=arguments, span=self._span(meta))

    def arguments(self, meta: Meta, *arguments: ast.Argument) -> tuple[ast.Argument, ...]:
        seen_named = False
        for argument in arguments:
            if argument.name is None and seen_named:
                self._report(faults.positional_after_named(argument.span))
            seen_named = seen_named or argument.name is not None
        return arguments

    def argument(self, meta: Meta, value: ast.Expression) -> ast.Argument:
        return ast.Argument(name=None, value=value, span=value.span)

    def variable(self, meta: Meta, name: Token) -> ast.Name:
        return ast.Name(name=str(name), span=self._span(meta))

    def number(self, meta: Meta, token: Token) -> ast.Literal:
        return ast.Literal(value=self._number(token), span=self._span(meta))

    def _number(self, token: Token) -> int | float:
        if token.type == "INT" and len(token) <= MOST_DIGITS:
            return int(token)
        if token.type == "FLOAT" and float(token) != float("inf"):
            return float(token)
        self._report(faults.number_too_large(self._token_span(token)))
        return 0

    def true(self, meta: Meta) -> ast.Literal:
        return ast.Literal(value=True, span=self._span(meta))

    def false(self, meta: Meta) -> ast.Literal:
        return ast.Literal(value=False, span=self._span(meta))

    def none(self, meta: Meta) -> ast.Literal:
        return ast.Literal(value=None, span=self._span(meta))

    def list_display(self, meta: Meta, *items: ast.Expression) -> ast.Expression:
        return ast.ListDisplay(items=items, span=self._span(meta))

    def comprehension(
        self,
        meta: Meta,
        item: ast.Expression,
        targets: tuple[str, ...],
        iterable: ast.Expression,
        condition: ast.Expression | None,
    ) -> ast.Comprehension:
        return ast.Comprehension(
            item=item, targets=targets, iterable=iterable, condition=condition, span=self._span(meta)
        )

    def dict_display(self, meta: Meta, *items: tuple[ast.Expression, ast.Expression]) -> ast.DictDisplay:
        return ast.DictDisplay(items=items, span=self._span(meta))

    def pair(self, meta: Meta, key: ast.Expression, value: ast.Expression) -> tuple[ast.Expression, ast.Expression]:
        return key, value

    # Strings -----------------------------------------------------------------------------------------

    def string(self, meta: Meta, token: Token) -> ast.Template:
        start, end = token.start_pos or 0, token.end_pos or 0
        self._lines_in_strings.update(range(self._line_of(start) + 1, self._line_of(end) + 1))
        literal = read_string(self._source.text, start, end)
        for bad in literal.bad_escapes:
            self._report(faults.bad_escape(Span(self._source, bad.start, bad.end), bad.stands_for_itself))
        parts = [part if isinstance(part, str) else self._filled(part) for part in literal.parts]
        return ast.Template(
            parts=tuple(part for part in parts if part is not None), span=Span(self._source, start, end)
        )

    def _filled(self, hole: Hole) -> ast.Expression | None:
        if not self._source.text[hole.start : hole.end].strip():
            self._report(faults.empty_hole(Span(self._source, hole.start - 2, hole.end + 1)))
            return None
        return self._parse_hole(hole.start, hole.end)

    def _constant(self, string: ast.Template, what: str) -> str:
        """The text of a string that can't have holes."""
        if string.constant is None:
            self._report(faults.hole_not_allowed(string.span, what))
        return string.constant or ""


def _operations(operators: Iterable[Any], operands: Iterable[ast.Expression]) -> tuple[Any, ...]:
    return tuple(zip(operators, operands, strict=True))


def _block(lines: Iterable[ast.Statement | None]) -> ast.Block:
    return tuple(line for line in lines if line is not None)
