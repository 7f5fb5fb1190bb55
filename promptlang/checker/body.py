"""Statements: what each may do where it stands, and which variables have a value after it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from promptlang.checker.answers import AnswerChecker
from promptlang.checker.checkpoints import checkpoint, samples
from promptlang.checker.inference import Inference, Slot
from promptlang.checker.names import Names, TypeResolver
from promptlang.checker.statics import PATH_PARTS, Arms, Branch, Branches, Scope, Static, Variable, merge, name_of
from promptlang.checker.tables import Checked, FragmentInfo, ProgramInfo, ToolInfo
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Span
from promptlang.grammar import shapes
from promptlang.grammar.shapes import Shape
from promptlang.syntax import ast
from promptlang.syntax.limits import MOST_BRANCHES, MOST_RETRIES
from promptlang.syntax.walk import (
    assigned_in,
    begins_with_answer,
    bound_in,
    dotted_name,
    has_turns,
    keeps_in,
    statements_of,
)
from promptlang.values.types import describe


@dataclass
class Loop:
    """A loop under way: the variables wherever it is left or goes on early."""

    breaks: list[Scope] = field(default_factory=list)
    continues: list[Scope] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """Where a statement stands: in a turn, in a loop (of the same branch), in a branch of a fork or a beam; `in_beam`
    says which."""

    in_turn: bool = False
    loop: Loop | None = None
    in_fork: bool = False
    in_beam: bool = False


class BodyChecker:
    """Checks the body of one program or fragment."""

    def __init__(
        self, names: Names, checked: Checked, diagnostics: list[Diagnostic], declaration: ast.Program | ast.Fragment
    ) -> None:
        self._names = names
        self._checked = checked
        self._diagnostics = diagnostics
        self._declaration = declaration
        self._inference = Inference(names, diagnostics)
        self._answers = AnswerChecker(self._inference, TypeResolver(names, diagnostics), checked, diagnostics)
        self._has_turns = has_turns(declaration.body)
        self._scope: Scope | None = None
        self._returns = False
        self._bound: dict[str, tuple[Span, str]] = {}
        self._variables = bound_in(declaration.body)
        self._adopted: dict[int, frozenset[str]] = {}
        self._position: tuple[ast.Block, int] = ((), 0)
        self._checks: dict[type[ast.Statement], Callable[[Any, Scope, Place], None]] = {
            ast.Text: self._text,
            ast.Role: self._role,
            ast.Ask: self._ask,
            ast.Assign: self._assign,
            ast.Call: self._call_statement,
            ast.Use: self._use,
            ast.If: self._if,
            ast.For: self._for,
            ast.While: self._while,
            ast.Break: self._jump,
            ast.Continue: self._jump,
            ast.Pass: self._nothing,
            ast.Pin: self._nothing,
            ast.ForkCount: self._fork_count,
            ast.ForkEach: self._fork_each,
            ast.ForkArms: self._fork_arms,
            ast.Beam: self._beam,
            ast.Require: self._require,
            ast.KeepBest: self._keep,
            ast.KeepWhere: self._keep,
            ast.KeepFirst: self._keep,
            ast.Adopt: self._adopt,
            ast.Log: self._log,
            ast.Return: self._return,
        }

    def check(self, info: ProgramInfo | FragmentInfo) -> None:
        """Check the whole body; variables count as unused only where nothing else is wrong."""
        known = len(self._diagnostics)
        scope = Scope({name: Variable(_static(shape)) for name, shape in info.shapes.items()})
        for parameter in self._declaration.parameters:
            start = parameter.span.start
            self._bound[parameter.name] = (Span(parameter.span.source, start, start + len(parameter.name)), "parameter")
        self._scope = scope
        self._block(self._declaration.body, Place())
        if isinstance(info, ProgramInfo) and info.returns is not None and self._scope is not None:
            self._report(faults.may_not_return(self._declaration.name_span, describe(info.returns)))
        if not any(diagnostic.is_error for diagnostic in self._diagnostics[known:]):
            self._report_unused()
        self._note_scores()

    def _report(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)

    def _report_unused(self) -> None:
        """Variables that nothing reads; without a `return`, all of a program's variables are its result."""
        used = self._inference.usage.names | self._inference.usage.attributes
        is_result = isinstance(self._declaration, ast.Program) and not self._returns
        for name, (span, what) in self._bound.items():
            if name not in used and not name.startswith("_") and (what == "parameter" or not is_result):
                self._report(faults.unused(span, name, what))

    def _note_scores(self) -> None:
        self._checked.score_readers |= self._inference.usage.score_readers
        self._checked.reads_any_scores |= self._inference.usage.reads_any_scores

    # Blocks ------------------------------------------------------------------------------------------

    def _block(self, block: ast.Block, place: Place) -> None:
        for index, statement in enumerate(block):
            if self._scope is None:
                self._report(faults.unreachable(_first_line(statement.span), "nothing goes on past the line above"))
                return
            if index + 1 < len(block):
                self._check_trailing_space(statement, block[index + 1])
            self._position = block, index
            self._checks[type(statement)](statement, self._scope, place)

    def _check_trailing_space(self, statement: ast.Statement, following: ast.Statement) -> None:
        if isinstance(statement, ast.Text) and begins_with_answer(following):
            last = statement.value.parts[-1] if statement.value.parts else ""
            if isinstance(last, str) and last.endswith((" ", "\t")):
                self._report(faults.trailing_space(statement.span))

    def _bind(self, name: str, static: Static, span: Span, what: str) -> None:
        assert self._scope is not None
        self._scope.bind(name, static)
        self._bound.setdefault(name, (Span(span.source, span.start, span.start + len(name)), what))

    # Prompt ------------------------------------------------------------------------------------------

    def _text(self, statement: ast.Text, scope: Scope, place: Place) -> None:
        self._inference.type_of(statement.value, scope)
        self._check_between_turns(statement.span, place)

    def _check_between_turns(self, span: Span, place: Place) -> None:
        if self._has_turns and not place.in_turn:
            self._report(faults.between_turns(_first_line(span)))

    def _role(self, statement: ast.Role, scope: Scope, place: Place) -> None:
        if place.in_turn:
            self._report(faults.nested_turn(_first_line(statement.span)))
        self._block(statement.body, replace(place, in_turn=True))

    def _ask(self, statement: ast.Ask, scope: Scope, place: Place) -> None:
        static = self._answers.type_of(statement.answer, scope)
        if isinstance(statement.answer, ast.Score):
            if statement.target is None:
                self._report(faults.score_alone(statement.span))
        else:
            self._check_between_turns(statement.span, place)
        if statement.target is not None:
            self._bind(statement.target, static, statement.span, "answer")

    def _use(self, statement: ast.Use, scope: Scope, place: Place) -> None:
        found = self._names.find(statement.name)
        span = Span(statement.span.source, statement.span.start, statement.span.end)
        if found is None:
            self._inference.unknown(statement.name, span, Scope(), self._names.declared_as(ast.Fragment))
            return
        fragment = found[0].fragments.get(found[1].name)
        if fragment is None:
            kind = self._names.kind(statement.name)
            fix = f"call it: `result = {statement.name}(...)`" if kind in ("program", "tool") else None
            self._report(faults.not_a_fragment(span, statement.name, f"a {kind}", fix))
            return
        self._checked.fragments[id(statement)] = fragment
        self._arguments(statement.name, fragment, statement.arguments, statement.span, scope)
        if has_turns(fragment.body):
            if place.in_turn:
                self._report(faults.nested_turn(statement.span))
        elif any(isinstance(inner, ast.Text | ast.Ask) for inner in statements_of(fragment.body)):
            self._check_between_turns(statement.span, place)

    def _arguments(
        self,
        name: str,
        info: ProgramInfo | FragmentInfo | ToolInfo,
        arguments: Sequence[ast.Argument],
        span: Span,
        scope: Scope,
    ) -> None:
        parameters = info.declaration.parameters
        slots = [
            Slot(parameter.name, info.shapes[parameter.name], parameter.default is None) for parameter in parameters
        ]
        self._inference.arguments(name, slots, arguments, span, scope)

    # Values ------------------------------------------------------------------------------------------

    def _assign(self, statement: ast.Assign, scope: Scope, place: Place) -> None:
        if isinstance(statement.value, ast.CallExpression) and self._is_call(statement.value, scope):
            static = self._call(statement.value, scope)
        else:
            static = self._inference.type_of(statement.value, scope)
        self._bind(statement.target, static, statement.span, "variable")

    def _call_statement(self, statement: ast.Call, scope: Scope, place: Place) -> None:
        if self._is_call(statement.call, scope):
            self._call(statement.call, scope)
            return
        known = len(self._diagnostics)
        self._inference.type_of(statement.call, scope)
        if len(self._diagnostics) == known:
            self._report(faults.does_nothing(statement.span, False))

    def _is_call(self, call: ast.CallExpression, scope: Scope) -> bool:
        """Whether a call runs a program or a tool."""
        name = dotted_name(call.function)
        return (
            name is not None
            and name.partition(".")[0] not in scope.variables
            and self._names.kind(name) in ("program", "tool")
        )

    def _call(self, call: ast.CallExpression, scope: Scope) -> Static:
        name = dotted_name(call.function)
        found = None if name is None else self._names.find(name)
        assert name is not None
        assert found is not None
        if isinstance(found[1], ast.Tool):
            tool = found[0].tools[found[1].name]
            self._checked.tools[id(call)] = tool
            self._arguments(name, tool, call.arguments, call.span, scope)
            return _static(tool.returns)
        program = found[0].programs[found[1].name]
        self._checked.callees[id(call)] = program
        self._arguments(name, program, call.arguments, call.span, scope)
        return None if program.returns is None else _static(program.returns)

    def _log(self, statement: ast.Log, scope: Scope, place: Place) -> None:
        self._inference.type_of(statement.value, scope)

    def _return(self, statement: ast.Return, scope: Scope, place: Place) -> None:
        self._returns = True
        static = self._inference.type_of(statement.value, scope)
        keyword = _first_word(statement.span)
        if isinstance(self._declaration, ast.Fragment):
            self._report(faults.return_in_fragment(keyword))
        elif place.in_fork:
            self._report(faults.leaves_branch(keyword, "return"))
        else:
            self._check_result(statement, static)
        self._scope = None

    def _check_result(self, statement: ast.Return, static: Static) -> None:
        returns = self._names.programs[self._declaration.name].returns
        if returns is not None and not self._inference.may_be(static, returns):
            self._report(faults.wrong_type(statement.value.span, "the result", describe(returns), name_of(static)))

    def _count(self, expression: ast.Expression, what: str, scope: Scope) -> None:
        self._inference.expect(expression, shapes.Int(0), what, scope, "a whole number, at least 0")

    def _nothing(self, statement: ast.Statement, scope: Scope, place: Place) -> None:
        pass

    # Control flow ------------------------------------------------------------------------------------

    def _if(self, statement: ast.If, scope: Scope, place: Place) -> None:
        ends: list[Scope | None] = []
        for condition, body in statement.branches:
            self._inference.type_of(condition, scope)
            self._scope = scope.copy()
            self._block(body, place)
            ends.append(self._scope)
        self._scope = scope.copy()
        self._block(statement.otherwise, place)
        self._scope = merge([*ends, self._scope])

    def _for(self, statement: ast.For, scope: Scope, place: Place) -> None:
        inner = _widened(scope, statement.body)
        self._inference.bind_items(statement.targets, statement.iterable, inner, scope)
        self._loop(statement.body, scope, inner, place, _runs_once(statement.iterable))

    def _while(self, statement: ast.While, scope: Scope, place: Place) -> None:
        inner = _widened(scope, statement.body)
        self._inference.type_of(statement.condition, inner)
        if statement.limit is not None:
            self._count(statement.limit, "the limit", scope)
        is_true = isinstance(statement.condition, ast.Literal) and bool(statement.condition.value)
        self._loop(statement.body, scope, inner, place, is_true)

    def _loop(self, body: ast.Block, before: Scope, inner: Scope, place: Place, runs_once: bool) -> None:
        loop = Loop()
        self._scope = inner
        self._block(body, replace(place, loop=loop))
        ends: list[Scope | None] = [self._scope, *loop.continues, *loop.breaks]
        self._scope = merge(ends if runs_once else [before, *ends])

    def _jump(self, statement: ast.Break | ast.Continue, scope: Scope, place: Place) -> None:
        word = statement.span.text
        if place.loop is None:
            self._report(
                faults.leaves_branch(statement.span, word)
                if place.in_fork
                else faults.outside_loop(statement.span, word)
            )
        else:
            (place.loop.breaks if isinstance(statement, ast.Break) else place.loop.continues).append(scope)
        self._scope = None

    def _require(self, statement: ast.Require, scope: Scope, place: Place) -> None:
        block, index = self._position
        self._inference.type_of(statement.condition, scope)
        wanted = f"a whole number from 0 to {MOST_RETRIES}"
        self._inference.expect(statement.retries, shapes.Int(0, MOST_RETRIES), "`retry`", scope, wanted)
        if statement.message is not None:
            self._inference.expect(statement.message, shapes.Str(), "the message of `require`", scope)
        if isinstance(statement.retries, ast.Literal) and statement.retries.value == 0:
            return
        found = checkpoint(block, index, statement.condition, self._variables, self._checked, self._adopted)
        if found is None:
            self._report(faults.nothing_to_retry(statement.condition.span))
            return
        self._checked.checkpoints[id(statement)] = found
        self._check_retried(statement, block[found:index])

    def _check_retried(self, statement: ast.Require, retried: ast.Block) -> None:
        """Whether what is done again can be, and whether that helps."""
        for keep in keeps_in(retried):
            self._report(faults.keep_retried(_first_word(keep.span), statement.span.position.line))
        if not samples(retried, self._checked):
            self._report(faults.nothing_sampled(statement.span, "every retry gives the same answer"))

    # Branches ----------------------------------------------------------------------------------------

    def _fork_count(self, statement: ast.ForkCount, scope: Scope, place: Place) -> None:
        self._count(statement.count, "the count of a fork", scope)
        branch = self._branch(statement.body, scope.copy(), scope, place, ())
        self._bind_fork(statement.name, Branches(branch), statement, scope)

    def _fork_each(self, statement: ast.ForkEach, scope: Scope, place: Place) -> None:
        inner = scope.copy()
        self._inference.bind_items(statement.targets, statement.iterable, inner, scope)
        branch = self._branch(statement.body, inner, scope, place, statement.targets)
        self._bind_fork(statement.name, Branches(branch), statement, scope)

    def _fork_arms(self, statement: ast.ForkArms, scope: Scope, place: Place) -> None:
        arms: dict[str, Branch] = {}
        for arm in statement.arms:
            if arm.name in arms:
                self._report(faults.named_twice(_first_line(arm.span), "arms", arm.name))
            arms[arm.name] = self._branch(arm.body, scope.copy(), scope, place, ())
        self._bind_fork(statement.name, Arms(arms), statement, scope)

    def _beam(self, statement: ast.Beam, scope: Scope, place: Place) -> None:
        for what, number in (("depth", statement.depth), ("width", statement.width), ("branch", statement.branch)):
            wanted = f"a whole number from 1 to {MOST_BRANCHES}"
            self._inference.expect(number, shapes.Int(1, MOST_BRANCHES), f"`{what}` of a beam", scope, wanted)
        own = assigned_in(statement.body)
        self._scope = _widened(scope, statement.body)
        self._block(statement.body, replace(place, loop=None, in_fork=True, in_beam=True))
        end = self._scope
        if end is not None:
            self._inference.expect(statement.by, shapes.Float(), "what paths are ranked by", end, "a number")
        is_single = isinstance(statement.branch, ast.Literal) and statement.branch.value == 1
        if not is_single and not samples(statement.body, self._checked):
            self._report(faults.nothing_sampled(_first_line(statement.span), "every branch of a path says the same"))
        fields = {name: known.type for name, known in (end or scope).variables.items() if name in own}
        self._bind_fork(statement.name, Branches(Branch(fields, PATH_PARTS)), statement, scope)

    def _branch(self, body: ast.Block, inner: Scope, outer: Scope, place: Place, targets: Iterable[str]) -> Branch:
        """Check the body of a branch; gives what it binds."""
        self._scope = inner
        self._block(body, replace(place, loop=None, in_fork=True, in_beam=False))
        own = {*targets, *assigned_in(body)}
        end = self._scope or inner
        self._scope = outer
        return Branch({name: variable.type for name, variable in end.variables.items() if name in own})

    def _bind_fork(self, name: str, static: Static, statement: ast.Statement, scope: Scope) -> None:
        self._scope = scope
        line = _first_line(statement.span)
        start = line.start + line.text.rindex(name)
        self._bind(name, static, Span(line.source, start, start + len(name)), "fork")

    def _keep(self, statement: ast.KeepBest | ast.KeepWhere | ast.KeepFirst, scope: Scope, place: Place) -> None:
        if not place.in_fork:
            self._report(faults.outside_fork(_first_word(statement.span), "keep"))
        elif place.in_beam:
            self._report(faults.keep_in_beam(_first_word(statement.span)))
        match statement:
            case ast.KeepBest(count=count, by=by):
                self._count(count, "how many branches to keep", scope)
                self._inference.expect(by, shapes.Float(), "what branches are ranked by", scope, "a number")
            case ast.KeepFirst(count=count):
                self._count(count, "how many branches to keep", scope)
            case ast.KeepWhere(condition=condition):
                self._inference.type_of(condition, scope)

    def _adopt(self, statement: ast.Adopt, scope: Scope, place: Place) -> None:
        static = self._inference.type_of(statement.branch, scope)
        if isinstance(static, Branch):
            self._adopted[id(statement)] = frozenset(static.fields)
            for name, kind in static.fields.items():
                scope.bind(name, kind)
        elif static is None:
            scope.is_open = True
        else:
            self._report(faults.not_a_branch(statement.branch.span, name_of(static)))


def _widened(scope: Scope, body: ast.Block) -> Scope:
    """What is known at the start of any round of a loop: nothing of what its body binds."""
    changed = assigned_in(body)
    variables = {
        name: Variable(None if name in changed else kept.type, kept.is_certain)
        for name, kept in scope.variables.items()
    }
    return Scope(variables, scope.is_open)


def _runs_once(iterable: ast.Expression) -> bool:
    """Whether a loop over this surely has a round."""
    match iterable:
        case ast.ListDisplay(items=items):
            return bool(items)
        case ast.CallExpression(
            function=ast.Name(name="range"), arguments=(ast.Argument(value=ast.Literal(value=int() as count)),)
        ):
            return count > 0
    return False


def _static(shape: Shape) -> Static:
    return None if isinstance(shape, shapes.AnyJson | shapes.Schema) else shape


def _first_line(span: Span) -> Span:
    """The part of a span that stands on its first line."""
    return Span(span.source, span.start, span.start + len(span.text.partition("\n")[0].rstrip("\r")))


def _first_word(span: Span) -> Span:
    return Span(span.source, span.start, span.start + len(span.text.split()[0]))
