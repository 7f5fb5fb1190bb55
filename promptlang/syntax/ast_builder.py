"""The parser's nodes to the AST. Bottom up and without recursion, so that depth costs nothing; a string's holes are
parsed on the way."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from lark import Token

from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Source, Span
from promptlang.syntax import ast
from promptlang.syntax.automaton import Node
from promptlang.syntax.strings import Hole, read_string
from promptlang.syntax.walk import has_turns

MOST_DIGITS = 1000


class AstBuilder:
    """One method a rule of the grammar.

    Args:
        source: where the tree comes from.
        diagnostics: what is wrong beyond the grammar goes here.
        parse_hole: parses the expression in a stretch of the source; None where it can't.
    """

    def __init__(
        self, source: Source, diagnostics: list[Diagnostic], parse_hole: Callable[[int, int], ast.Expression | None]
    ) -> None:
        self._source = source
        self._diagnostics = diagnostics
        self._parse_hole = parse_hole
        self._lines_in_strings: set[int] = set()

    def build(self, whole: Node) -> Any:
        """The AST of a node and of all inside it. What was built before stays, and a node that is built holds no more
        of what it was built of."""
        nodes = []
        stack = [whole]
        while stack:
            node = stack.pop()
            nodes.append(node)
            stack += [child for child in node.children if type(child) is Node and child.built is None]
        for node in reversed(nodes):
            children = [child.built if type(child) is Node else child for child in node.children]
            node.built = getattr(self, node.rule)(node, *children)
            node.children = []
        return whole.built

    # Places ------------------------------------------------------------------------------------------

    def _span(self, node: Node, body: Sequence[ast.AstNode] | None = None) -> Span:
        """From a rule's first character to its last; where it has a body, to the end of that (an empty one:
        of its first line)."""
        if body is None:
            return Span(self._source, node.start, node.end)
        line_end = self._source.text.find("\n", node.start)
        return Span(self._source, node.start, body[-1].span.end if body else line_end % (len(self._source.text) + 1))

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
        if number < self._source.first_line or number in self._lines_in_strings:
            return None
        return re.fullmatch(r"[ \t]*## ?(.*)", self._source.line(number))

    # Files -------------------------------------------------------------------------------------------

    def file(self, node: Node, *items: Any) -> ast.Module:
        doc = next((item for item in items if isinstance(item, str)), None)
        declarations = tuple(item for item in items if isinstance(item, ast.Declaration))
        return ast.Module(
            span=Span(self._source, 0, len(self._source.text)), source=self._source, doc=doc, declarations=declarations
        )

    def statements(self, node: Node, *lines: ast.Statement | None) -> ast.Block:
        return _block(lines)

    def hole(self, node: Node, expression: ast.Expression) -> ast.Expression:
        return expression

    def docstring(self, node: Node, string: ast.Template) -> str:
        return self._constant(string, "a docstring")

    def broken(self, node: Node, *_: Any) -> None:
        return None

    broken_declaration = broken_field = broken

    # Declarations ------------------------------------------------------------------------------------

    def program(self, node: Node, name: Token, parameters: tuple[ast.Parameter, ...], *rest: Any) -> ast.Program:
        returns, body = rest if len(rest) == 2 else (None, rest[0])
        doc, body = self._documented(node, body)
        place = self._declared(node, name, doc, body)
        return ast.Program(parameters=parameters, returns=returns, body=body, **place)

    def fragment(self, node: Node, name: Token, parameters: tuple[ast.Parameter, ...], body: ast.Block) -> ast.Fragment:
        doc, body = self._documented(node, body)
        return ast.Fragment(parameters=parameters, body=body, **self._declared(node, name, doc, body))

    def _documented(self, node: Node, body: ast.Block) -> tuple[str | None, ast.Block]:
        """The docstring of a body, and the rest. In a body without turns the first string is prompt text."""
        comment = self._comment_above(node.start)
        if len(body) > 1 and isinstance(body[0], ast.Text) and body[0].value.constant is not None and has_turns(body):
            return comment or body[0].value.constant, body[1:]
        return comment, body

    def _declared(
        self, node: Node, name: Token, doc: str | None, body: Sequence[ast.AstNode] | None = None
    ) -> dict[str, Any]:
        return {"name": str(name), "name_span": self._token_span(name), "doc": doc, "span": self._span(node, body)}

    def record(self, node: Node, name: Token, *fields: ast.Parameter | None) -> ast.Record:
        kept = tuple(field for field in fields if field is not None)
        return ast.Record(fields=kept, **self._declared(node, name, self._comment_above(node.start), kept))

    def alias(self, node: Node, name: Token, type_: ast.TypeExpression) -> ast.TypeAlias:
        return ast.TypeAlias(type=type_, **self._declared(node, name, self._comment_above(node.start)))

    def const(self, node: Node, name: Token, value: ast.Expression) -> ast.Const:
        return ast.Const(value=value, **self._declared(node, name, self._comment_above(node.start)))

    def tool(
        self, node: Node, name: Token, parameters: tuple[ast.Parameter, ...], returns: ast.TypeExpression | None = None
    ) -> ast.Tool:
        place = self._declared(node, name, self._comment_above(node.start))
        return ast.Tool(parameters=parameters, returns=returns, **place)

    def import_file(self, node: Node, path: ast.Template, name: Token) -> ast.Import:
        place = self._declared(node, name, self._comment_above(node.start))
        return ast.Import(path=self._constant(path, "the path of an import"), **place)

    def name(self, node: Node, name: Token) -> Token:
        return name

    def returns(self, node: Node, type_: ast.TypeExpression) -> ast.TypeExpression:
        return type_

    def parameters(self, node: Node, *parameters: ast.Parameter) -> tuple[ast.Parameter, ...]:
        return parameters

    def parameter(
        self, node: Node, name: Token, type_: ast.TypeExpression | None, default: ast.Expression | None
    ) -> ast.Parameter:
        written = type_ or ast.NamedType(name="str", span=self._token_span(name))
        doc = self._comment_above(node.start) if self._is_first_on_line(node) else None
        return ast.Parameter(name=str(name), type=written, default=default, doc=doc, span=self._span(node))

    field = parameter

    def _is_first_on_line(self, node: Node) -> bool:
        line_start = self._source.text.rfind("\n", 0, node.start) + 1
        return not self._source.text[line_start : node.start].strip()

    # Statements --------------------------------------------------------------------------------------

    def body(self, node: Node, *lines: ast.Statement | None) -> ast.Block:
        return _block(lines)

    def expression_statement(self, node: Node, expression: ast.Expression) -> ast.Statement | None:
        if isinstance(expression, ast.Template):
            return ast.Text(value=expression, span=self._span(node))
        if isinstance(expression, ast.CallExpression):
            return ast.Call(call=expression, span=self._span(node))
        self._report(faults.does_nothing(expression.span, isinstance(expression, ast.Comparison)))
        return None

    def assign(self, node: Node, target: str, value: ast.Expression) -> ast.Assign:
        return ast.Assign(target=target, value=value, span=self._span(node))

    def ask(self, node: Node, target: str, answer: ast.Answer) -> ast.Ask:
        return ast.Ask(target=target, answer=answer, span=self._span(node))

    def ask_alone(self, node: Node, answer: ast.Answer) -> ast.Ask:
        return ast.Ask(target=None, answer=answer, span=self._span(node))

    def target(self, node: Node, *_: Token) -> str:
        return self._source.text[node.start : node.end]

    def use(self, node: Node, name: str, arguments: tuple[ast.Argument, ...]) -> ast.Use:
        return ast.Use(name=name, arguments=arguments, span=self._span(node))

    def keep_first(self, node: Node, count: ast.Expression) -> ast.KeepFirst:
        return ast.KeepFirst(count=count, span=self._span(node))

    def keep_where(self, node: Node, condition: ast.Expression) -> ast.KeepWhere:
        return ast.KeepWhere(condition=condition, span=self._span(node))

    def keep_best(self, node: Node, count: ast.Expression, by: ast.Expression) -> ast.KeepBest:
        return ast.KeepBest(count=count, by=by, span=self._span(node))

    def adopt(self, node: Node, branch: ast.Expression) -> ast.Adopt:
        return ast.Adopt(branch=branch, span=self._span(node))

    def require(
        self, node: Node, condition: ast.Expression, retries: ast.Expression, message: ast.Expression | None
    ) -> ast.Require:
        return ast.Require(condition=condition, retries=retries, message=message, span=self._span(node))

    def log(self, node: Node, value: ast.Expression) -> ast.Log:
        return ast.Log(value=value, span=self._span(node))

    def return_value(self, node: Node, value: ast.Expression) -> ast.Return:
        return ast.Return(value=value, span=self._span(node))

    def pin(self, node: Node) -> ast.Pin:
        return ast.Pin(span=self._span(node))

    def pass_by(self, node: Node) -> ast.Pass:
        return ast.Pass(span=self._span(node))

    def break_loop(self, node: Node) -> ast.Break:
        return ast.Break(span=self._span(node))

    def continue_loop(self, node: Node) -> ast.Continue:
        return ast.Continue(span=self._span(node))

    def turn(self, node: Node, role: Token, body: ast.Block) -> ast.Role:
        return ast.Role(role=str(role), body=body, span=self._span(node, body))

    def other_turn(self, node: Node, role: ast.Template, body: ast.Block) -> ast.Role:
        return ast.Role(role=self._constant(role, "the name of a role"), body=body, span=self._span(node, body))

    def if_else(self, node: Node, condition: ast.Expression, body: ast.Block, *rest: Any) -> ast.If:
        branches = [(condition, body), *(part for part in rest if len(part) == 2)]
        otherwise = next((part[0] for part in rest if len(part) == 1), ())
        return ast.If(
            branches=tuple(branches), otherwise=otherwise, span=self._span(node, otherwise or branches[-1][1])
        )

    def elif_part(self, node: Node, condition: ast.Expression, body: ast.Block) -> tuple[ast.Expression, ast.Block]:
        return condition, body

    def else_part(self, node: Node, body: ast.Block) -> tuple[ast.Block]:
        return (body,)

    def for_each(self, node: Node, targets: tuple[str, ...], iterable: ast.Expression, body: ast.Block) -> ast.For:
        return ast.For(targets=targets, iterable=iterable, body=body, span=self._span(node, body))

    def while_loop(
        self, node: Node, condition: ast.Expression, limit: ast.Expression | None, body: ast.Block
    ) -> ast.While:
        return ast.While(condition=condition, limit=limit, body=body, span=self._span(node, body))

    def fork_count(
        self, node: Node, count: ast.Expression, name: Token, allow_none: bool, body: ast.Block
    ) -> ast.ForkCount:
        return ast.ForkCount(count=count, name=str(name), body=body, allow_none=allow_none, span=self._span(node, body))

    def fork_each(
        self,
        node: Node,
        targets: tuple[str, ...],
        iterable: ast.Expression,
        name: Token,
        allow_none: bool,
        body: ast.Block,
    ) -> ast.ForkEach:
        span = self._span(node, body)
        return ast.ForkEach(
            targets=targets, iterable=iterable, name=str(name), body=body, allow_none=allow_none, span=span
        )

    def fork_arms(self, node: Node, name: Token, *arms: ast.Arm | None) -> ast.ForkArms:
        kept = tuple(arm for arm in arms if arm is not None)
        return ast.ForkArms(name=str(name), arms=kept, span=self._span(node, kept))

    def beam(self, node: Node, *parts: Any) -> ast.Statement | None:
        *options, by, name, body = parts
        given = {option.name: option.value for option in options}
        span = self._span(node, body)
        if sorted(given) != ["branch", "depth", "width"] or len(options) != 3:
            self._report(faults.beam_options(self._span(node)))
            return None
        return ast.Beam(by=by, name=str(name), body=body, span=span, **given)

    def arm(self, node: Node, name: Token, body: ast.Block) -> ast.Arm:
        return ast.Arm(name=str(name), body=body, span=self._span(node, body))

    def or_none(self, node: Node, *words: Token) -> bool:
        return bool(words)

    def targets(self, node: Node, *names: Token) -> tuple[str, ...]:
        return tuple(map(str, names))

    # Answers -----------------------------------------------------------------------------------------

    def gen(self, node: Node, *items: Any) -> ast.Gen:
        type_ = next((item for item in items if isinstance(item, ast.TypeExpression)), None)
        options = tuple(item for item in items if isinstance(item, ast.Argument))
        return ast.Gen(type=type_, options=options, span=self._span(node))

    def select(self, node: Node, arguments: tuple[ast.Argument, ...]) -> ast.Select:
        choices = tuple(argument.value for argument in arguments if argument.name is None)
        options = tuple(argument for argument in arguments if argument.name is not None)
        return ast.Select(choices=choices, options=options, span=self._span(node))

    def score(self, node: Node, text: ast.Expression) -> ast.Score:
        return ast.Score(text=text, span=self._span(node))

    def option(self, node: Node, name: Token, value: ast.Expression) -> ast.Argument:
        return ast.Argument(name=str(name), value=value, span=self._span(node))

    named_argument = beam_option = option

    # Types -------------------------------------------------------------------------------------------

    def union_type(self, node: Node, *options: ast.TypeExpression) -> ast.TypeExpression:
        return options[0] if len(options) == 1 else ast.UnionType(options=options, span=self._span(node))

    def named_type(self, node: Node, name: str) -> ast.TypeExpression:
        return ast.NamedType(name=name, span=self._span(node))

    def dotted(self, node: Node, *names: Token) -> str:
        return ".".join(names)

    def bounded_type(self, node: Node, name: Token, option: Token, bound: int | float) -> ast.TypeExpression:
        if (name, option) != ("str", "max") or not isinstance(bound, int) or bound < 0:
            self._report(
                faults.bad_type(self._span(node), "only `str(max=N)` takes a bound like this, N a whole number")
            )
            return self._any(node)
        return ast.BoundedStr(maximum=bound, span=self._span(node))

    def generic_type(self, node: Node, name: Token, *items: ast.TypeExpression) -> ast.TypeExpression:
        match str(name), items:
            case "list", (item,):
                return ast.ListType(item=item, span=self._span(node))
            case "dict", (ast.NamedType(name="str"), value):
                return ast.DictType(value=value, span=self._span(node))
        self._report(
            faults.bad_type(self._span(node), "types with brackets are `list[T]`, `list[T, 1..5]` and `dict[str, T]`")
        )
        return self._any(node)

    def counted_type(
        self, node: Node, name: Token, item: ast.TypeExpression, low: int | float, high: int | float
    ) -> ast.TypeExpression:
        if name != "list" or not isinstance(low, int) or not isinstance(high, int) or not 0 <= low <= high:
            self._report(
                faults.bad_type(
                    self._span(node), "bounds stand as in `list[T, 1..5]`: whole numbers, the lower one first"
                )
            )
            return self._any(node)
        return ast.ListType(item=item, minimum=low, maximum=high, span=self._span(node))

    def range_type(self, node: Node, base: Token, low: int | float, high: int | float) -> ast.TypeExpression:
        is_whole = isinstance(low, int) and isinstance(high, int)
        if base not in ("int", "float") or low > high or (base == "int" and not is_whole):
            self._report(
                faults.bad_type(self._span(node), "ranges are `int in 1..5` and `float in 0..1`, the lower end first")
            )
            return self._any(node)
        return ast.RangeType(base="int" if base == "int" else "float", low=low, high=high, span=self._span(node))

    def _any(self, node: Node) -> ast.TypeExpression:
        return ast.NamedType(name="json", span=self._span(node))

    def string_type(self, node: Node, string: ast.Template) -> ast.LiteralType:
        return ast.LiteralType(value=self._constant(string, "a type"), span=self._span(node))

    def number_type(self, node: Node, value: int | float) -> ast.LiteralType:
        return ast.LiteralType(value=value, span=self._span(node))

    def true_type(self, node: Node) -> ast.LiteralType:
        return ast.LiteralType(value=True, span=self._span(node))

    def false_type(self, node: Node) -> ast.LiteralType:
        return ast.LiteralType(value=False, span=self._span(node))

    def none_type(self, node: Node) -> ast.NamedType:
        return ast.NamedType(name="none", span=self._span(node))

    def pattern_type(self, node: Node, token: Token) -> ast.PatternType:
        return ast.PatternType(pattern=token[1:-1].replace("\\/", "/"), span=self._span(node))

    def schema_type(self, node: Node, path: ast.Template) -> ast.SchemaType:
        return ast.SchemaType(path=self._constant(path, "the path of a schema"), span=self._span(node))

    def grammar_type(self, node: Node, path: ast.Template) -> ast.GrammarType:
        return ast.GrammarType(path=self._constant(path, "the path of a grammar"), span=self._span(node))

    def signed(self, node: Node, *tokens: Token) -> int | float:
        value = self._number(tokens[-1])
        return -value if len(tokens) == 2 else value

    # Expressions -------------------------------------------------------------------------------------

    def conditional(
        self, node: Node, then: ast.Expression, condition: ast.Expression, otherwise: ast.Expression
    ) -> ast.Conditional:
        return ast.Conditional(condition=condition, then=then, otherwise=otherwise, span=self._span(node))

    def logic(self, node: Node, *parts: Any) -> ast.Logic:
        return ast.Logic(operator=str(parts[1]), operands=parts[::2], span=self._span(node))  # type: ignore[arg-type]

    def arithmetic(self, node: Node, first: ast.Expression, *rest: Any) -> ast.Arithmetic:
        return ast.Arithmetic(first=first, rest=_operations(map(str, rest[::2]), rest[1::2]), span=self._span(node))

    def unary(self, node: Node, operator: Token, operand: ast.Expression) -> ast.Unary:
        return ast.Unary(operator=str(operator), operand=operand, span=self._span(node))  # type: ignore[arg-type]

    def comparison(self, node: Node, first: ast.Expression, *rest: Any) -> ast.Comparison:
        return ast.Comparison(first=first, rest=_operations(rest[::2], rest[1::2]), span=self._span(node))

    def comparator(self, node: Node, *tokens: Token) -> str:
        return " ".join(self._source.text[node.start : node.end].split())

    def attribute(self, node: Node, value: ast.Expression, name: Token) -> ast.Attribute:
        return ast.Attribute(value=value, name=str(name), span=self._span(node))

    def index(self, node: Node, value: ast.Expression, index: ast.Expression) -> ast.Index:
        return ast.Index(value=value, index=index, span=self._span(node))

    def slice(
        self,
        node: Node,
        value: ast.Expression,
        start: ast.Expression | None,
        stop: ast.Expression | None,
        step: ast.Expression | None = None,
    ) -> ast.Slice:
        return ast.Slice(value=value, start=start, stop=stop, step=step, span=self._span(node))

    def call(self, node: Node, function: ast.Expression, arguments: tuple[ast.Argument, ...]) -> ast.CallExpression:
        return ast.CallExpression(function=function, arguments=arguments, span=self._span(node))

    def arguments(self, node: Node, *arguments: ast.Argument) -> tuple[ast.Argument, ...]:
        seen_named = False
        for argument in arguments:
            if argument.name is None and seen_named:
                self._report(faults.positional_after_named(argument.span))
            seen_named = seen_named or argument.name is not None
        return arguments

    def argument(self, node: Node, value: ast.Expression) -> ast.Argument:
        return ast.Argument(name=None, value=value, span=value.span)

    def variable(self, node: Node, name: Token) -> ast.Name:
        return ast.Name(name=str(name), span=self._span(node))

    def number(self, node: Node, token: Token) -> ast.Literal:
        return ast.Literal(value=self._number(token), span=self._span(node))

    def _number(self, token: Token) -> int | float:
        if token.type == "INT" and len(token) <= MOST_DIGITS:
            return int(token)
        if token.type == "FLOAT" and float(token) != float("inf"):
            return float(token)
        self._report(faults.number_too_large(self._token_span(token)))
        return 0

    def true(self, node: Node) -> ast.Literal:
        return ast.Literal(value=True, span=self._span(node))

    def false(self, node: Node) -> ast.Literal:
        return ast.Literal(value=False, span=self._span(node))

    def none(self, node: Node) -> ast.Literal:
        return ast.Literal(value=None, span=self._span(node))

    def list_display(self, node: Node, *items: ast.Expression) -> ast.Expression:
        return ast.ListDisplay(items=items, span=self._span(node))

    def comprehension(
        self,
        node: Node,
        item: ast.Expression,
        targets: tuple[str, ...],
        iterable: ast.Expression,
        condition: ast.Expression | None,
    ) -> ast.Comprehension:
        return ast.Comprehension(
            item=item, targets=targets, iterable=iterable, condition=condition, span=self._span(node)
        )

    def dict_display(self, node: Node, *items: tuple[ast.Expression, ast.Expression]) -> ast.DictDisplay:
        return ast.DictDisplay(items=items, span=self._span(node))

    def pair(self, node: Node, key: ast.Expression, value: ast.Expression) -> tuple[ast.Expression, ast.Expression]:
        return key, value

    # Strings -----------------------------------------------------------------------------------------

    def string(self, node: Node, token: Token) -> ast.Template:
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
