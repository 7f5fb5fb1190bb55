"""Statements: what each may do where it stands, and which variables have a value after it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from promptlang.checker.answers import AnswerChecker
from promptlang.checker.checkpoints import checkpoint
from promptlang.checker.endings import texts_before
from promptlang.checker.inference import Inference, Slot
from promptlang.checker.names import Names, TypeResolver
from promptlang.checker.statics import (
    PATH_PARTS,
    ArmsType,
    BranchesType,
    BranchType,
    Scope,
    Static,
    Variable,
    join_scopes,
    joined,
    may_be,
    name_of,
    static_of,
)
from promptlang.checker.tables import Checked, FragmentInfo, ProgramInfo, Repeated, ToolInfo
from promptlang.checker.whole_reads import read_whole
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Span
from promptlang.grammar import shapes
from promptlang.grammar.shapes import describe
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


@dataclass
class LoopExits:
    """A loop under way: the variables where a round begins, and wherever it is left or goes on early."""

    start: Scope
    breaks: list[Scope] = field(default_factory=list)
    continues: list[Scope] = field(default_factory=list)


@dataclass(frozen=True)
class Context:
    """Where a statement stands: in a turn, in a loop (of the same branch), in a branch of a fork or a beam; `in_beam`
    says which."""

    in_turn: bool = False
    loop: LoopExits | None = None
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
        self._checks: dict[type[ast.Statement], Callable[[Any, Scope, Context], None]] = {
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
        is_program = isinstance(info, ProgramInfo)
        scope = Scope({name: Variable(static_of(shape), is_argument=is_program) for name, shape in info.shapes.items()})
        for parameter in self._declaration.parameters:
            start = parameter.span.start
            self._bound[parameter.name] = (Span(parameter.span.source, start, start + len(parameter.name)), "parameter")
        self._scope = scope
        self._block(self._declaration.body, Context())
        if isinstance(info, ProgramInfo) and info.returns is not None and self._scope is not None:
            self._report(faults.may_not_return(self._declaration.name_span, describe(info.returns)))
        if not any(diagnostic.is_error for diagnostic in self._diagnostics[known:]):
            self._report_unused()
        self._note_scores()

    def check_next(self, scope: Scope) -> None:
        """Check the body as statements that follow others, as typed at a prompt.

        Args:
            scope: the variables so far; takes what the body binds.
        """
        self._scope = scope
        self._block(self._declaration.body, Context())
        self._note_scores()

    def _report(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)

    def _report_unused(self) -> None:
        """Variables that nothing reads; without a `return`, all of a program's variables are its result."""
        reads = self._inference.reads
        used = reads.names | reads.attributes | read_whole(self._declaration.body)
        is_result = isinstance(self._declaration, ast.Program) and not self._returns
        for name, (span, what) in self._bound.items():
            if name not in used and not name.startswith("_") and (what == "parameter" or not is_result):
                self._report(faults.unused(span, name, what))

    def _note_scores(self) -> None:
        self._checked.score_readers |= self._inference.reads.score_readers
        self._checked.reads_any_scores |= self._inference.reads.reads_any_scores

    # Blocks ------------------------------------------------------------------------------------------

    def _block(self, block: ast.Block, context: Context) -> None:
        for index, statement in enumerate(block):
            if self._scope is None:
                self._report(faults.unreachable(statement.span.first_line, "nothing goes on past the line above"))
                return
            if begins_with_answer(statement):
                self._check_trailing_space(block, index)
            self._position = block, index
            self._checks[type(statement)](statement, self._scope, context)

    def _check_trailing_space(self, block: ast.Block, answer: int) -> None:
        for text in texts_before(block, answer, self._checked):
            last = text.value.parts[-1] if text.value.parts else ""
            if isinstance(last, str) and last.endswith((" ", "\t")):
                self._report(faults.trailing_space(text.span))

    def _bind(self, name: str, static: Static, span: Span, what: str) -> None:
        assert self._scope is not None
        self._scope.bind(name, static)
        self._bound.setdefault(name, (Span(span.source, span.start, span.start + len(name)), what))

    # Prompt ------------------------------------------------------------------------------------------

    def _text(self, statement: ast.Text, scope: Scope, context: Context) -> None:
        self._inference.type_of(statement.value, scope)
        self._check_between_turns(statement.span, context)

    def _check_between_turns(self, span: Span, context: Context) -> None:
        if self._has_turns and not context.in_turn:
            self._report(faults.between_turns(span.first_line))

    def _role(self, statement: ast.Role, scope: Scope, context: Context) -> None:
        if context.in_turn:
            self._report(faults.nested_turn(statement.span.first_line))
        self._block(statement.body, replace(context, in_turn=True))

    def _ask(self, statement: ast.Ask, scope: Scope, context: Context) -> None:
        static = self._answers.type_of(statement.answer, scope)
        if isinstance(statement.answer, ast.Score):
            if statement.target is None:
                self._report(faults.score_alone(statement.span))
        else:
            self._check_between_turns(statement.span, context)
        if statement.target is not None:
            self._bind(statement.target, static, statement.span, "answer")

    def _use(self, statement: ast.Use, scope: Scope, context: Context) -> None:
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
            if context.in_turn:
                self._report(faults.nested_turn(statement.span))
        elif any(isinstance(inner, ast.Text | ast.Ask) for inner in statements_of(fragment.body)):
            self._check_between_turns(statement.span, context)

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

    def _assign(self, statement: ast.Assign, scope: Scope, context: Context) -> None:
        if isinstance(statement.value, ast.CallExpression) and self._is_call(statement.value, scope):
            static = self._call(statement.value, scope)
        else:
            static = self._inference.type_of(statement.value, scope)
        self._bind(statement.target, static, statement.span, "variable")

    def _call_statement(self, statement: ast.Call, scope: Scope, context: Context) -> None:
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
            name is not None and name.partition(".")[0] not in scope and self._names.kind(name) in ("program", "tool")
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
            return static_of(tool.returns)
        program = found[0].programs[found[1].name]
        self._checked.callees[id(call)] = program
        self._arguments(name, program, call.arguments, call.span, scope)
        return None if program.returns is None else static_of(program.returns)

    def _log(self, statement: ast.Log, scope: Scope, context: Context) -> None:
        self._inference.type_of(statement.value, scope)

    def _return(self, statement: ast.Return, scope: Scope, context: Context) -> None:
        self._returns = True
        static = self._inference.type_of(statement.value, scope)
        keyword = statement.span.first_word
        if isinstance(self._declaration, ast.Fragment):
            self._report(faults.return_in_fragment(keyword))
        elif context.in_fork:
            self._report(faults.leaves_branch(keyword, "return"))
        else:
            self._check_result(statement, static)
        self._scope = None

    def _check_result(self, statement: ast.Return, static: Static) -> None:
        returns = self._names.programs[self._declaration.name].returns
        if returns is not None and not may_be(static, returns):
            self._report(faults.wrong_type(statement.value.span, "the result", describe(returns), name_of(static)))

    def _count(self, expression: ast.Expression, what: str, scope: Scope) -> None:
        self._inference.expect(expression, shapes.Int(0), what, scope, "a whole number, at least 0")

    def _nothing(self, statement: ast.Statement, scope: Scope, context: Context) -> None:
        pass

    # Control flow ------------------------------------------------------------------------------------

    def _if(self, statement: ast.If, scope: Scope, context: Context) -> None:
        ends: list[Scope | None] = []
        rest = scope
        for condition, body in statement.branches:
            self._inference.type_of(condition, rest)
            self._scope = self._inference.narrowed(condition, True, rest).inner()
            self._block(body, context)
            ends.append(self._scope)
            rest = self._inference.narrowed(condition, False, rest)
        self._scope = rest.inner()
        self._block(statement.otherwise, context)
        self._scope = join_scopes(scope, [*ends, self._scope])

    def _for(self, statement: ast.For, scope: Scope, context: Context) -> None:
        inner = _widened(scope, statement.body)
        self._inference.bind_items(statement.targets, statement.iterable, inner, scope)
        self._loop(statement.body, scope, inner, context, _runs_once(statement.iterable))

    def _while(self, statement: ast.While, scope: Scope, context: Context) -> None:
        inner = _widened(scope, statement.body)
        self._inference.type_of(statement.condition, inner)
        if statement.limit is not None:
            self._count(statement.limit, "the limit", scope)
        is_true = isinstance(statement.condition, ast.Literal) and bool(statement.condition.value)
        inner = self._inference.narrowed(statement.condition, True, inner)
        exits = self._loop(statement.body, scope, inner, context, is_true)
        returns = any(isinstance(each, ast.Return) for each in statements_of(statement.body))
        if is_true and statement.limit is None and not exits.breaks and not returns:
            self._report(faults.endless_loop(statement.span.first_line))

    def _loop(self, body: ast.Block, before: Scope, inner: Scope, context: Context, runs_once: bool) -> LoopExits:
        """Check the body of a loop; gives the ways out of it."""
        loop = LoopExits(inner)
        self._scope = inner
        self._block(body, replace(context, loop=loop))
        ends: list[Scope | None] = [self._scope, *loop.continues, *loop.breaks]
        self._scope = join_scopes(before, ends if runs_once else [before.inner(), *ends])
        return loop

    def _jump(self, statement: ast.Break | ast.Continue, scope: Scope, context: Context) -> None:
        word = statement.span.text
        if context.loop is None:
            self._report(
                faults.leaves_branch(statement.span, word)
                if context.in_fork
                else faults.outside_loop(statement.span, word)
            )
        else:
            exits = context.loop.breaks if isinstance(statement, ast.Break) else context.loop.continues
            exits.append(scope.since(context.loop.start))
        self._scope = None

    def _require(self, statement: ast.Require, scope: Scope, context: Context) -> None:
        block, index = self._position
        self._inference.type_of(statement.condition, scope)
        wanted = f"a whole number from 0 to {MOST_RETRIES}"
        self._inference.expect(statement.retries, shapes.Int(0, MOST_RETRIES), "`retry`", scope, wanted)
        if statement.message is not None:
            self._inference.expect(statement.message, shapes.Str(), "the message of `require`", scope)
        self._goes_on_where(statement.condition, scope)
        if isinstance(statement.retries, ast.Literal) and statement.retries.value == 0:
            return
        found = checkpoint(block, index, statement.condition, self._variables, self._checked, self._adopted)
        if found is None:
            self._report(faults.nothing_to_retry(statement.condition.span))
            return
        self._checked.checkpoints[id(statement)] = found
        self._check_retried(statement, block[found:index])

    def _check_retried(self, statement: ast.Require, retried: ast.Block) -> None:
        """Whether what is done again can be; whether that helps is seen once all bodies are checked."""
        for keep in keeps_in(retried):
            self._report(faults.keep_retried(keep.span.first_word, statement.span.position.line))
        self._checked.repeated.append(Repeated(retried, statement.span, "every retry gives the same answer"))

    # Branches --------------------------------------------------------------------------------------------

    def _fork_count(self, statement: ast.ForkCount, scope: Scope, context: Context) -> None:
        self._count(statement.count, "the count of a fork", scope)
        branch = self._branch(statement.body, scope.inner(), scope, context, ())
        self._bind_fork(statement.name, BranchesType(branch), statement, scope)

    def _fork_each(self, statement: ast.ForkEach, scope: Scope, context: Context) -> None:
        inner = scope.inner()
        self._inference.bind_items(statement.targets, statement.iterable, inner, scope)
        branch = self._branch(statement.body, inner, scope, context, statement.targets)
        self._bind_fork(statement.name, BranchesType(branch), statement, scope)

    def _fork_arms(self, statement: ast.ForkArms, scope: Scope, context: Context) -> None:
        arms: dict[str, BranchType] = {}
        for arm in statement.arms:
            if arm.name in arms:
                self._report(faults.named_twice(arm.span.first_line, "arms", arm.name))
            arms[arm.name] = self._branch(arm.body, scope.inner(), scope, context, ())
        self._bind_fork(statement.name, ArmsType(arms), statement, scope)

    def _beam(self, statement: ast.Beam, scope: Scope, context: Context) -> None:
        for what, number in (("depth", statement.depth), ("width", statement.width), ("branch", statement.branch)):
            wanted = f"a whole number from 1 to {MOST_BRANCHES}"
            self._inference.expect(number, shapes.Int(1, MOST_BRANCHES), f"`{what}` of a beam", scope, wanted)
        own = assigned_in(statement.body)
        self._scope = _widened(scope, statement.body)
        self._block(statement.body, replace(context, loop=None, in_fork=True, in_beam=True))
        end = self._scope
        if end is not None:
            self._inference.expect(statement.by, shapes.Float(), "what paths are ranked by", end, "a number")
        is_single = isinstance(statement.branch, ast.Literal) and statement.branch.value == 1
        if not is_single:
            so = "every branch of a path says the same"
            self._checked.repeated.append(Repeated(statement.body, statement.span.first_line, so))
        branch = BranchType(_types_of(own, end or scope), PATH_PARTS)
        self._bind_fork(statement.name, BranchesType(branch), statement, scope)

    def _branch(
        self, body: ast.Block, inner: Scope, outer: Scope, context: Context, targets: Iterable[str]
    ) -> BranchType:
        """Check the body of a branch; gives what it binds."""
        self._scope = inner
        self._block(body, replace(context, loop=None, in_fork=True, in_beam=False))
        own = {*targets, *assigned_in(body)}
        end = self._scope or inner
        self._scope = outer
        return BranchType(_types_of(own, end))

    def _bind_fork(self, name: str, static: Static, statement: ast.Statement, scope: Scope) -> None:
        self._scope = scope
        line = statement.span.first_line
        start = line.start + line.text.rindex(name)
        self._bind(name, static, Span(line.source, start, start + len(name)), "fork")

    def _keep(self, statement: ast.KeepBest | ast.KeepWhere | ast.KeepFirst, scope: Scope, context: Context) -> None:
        if not context.in_fork:
            self._report(faults.outside_fork(statement.span.first_word, "keep"))
        elif context.in_beam:
            self._report(faults.keep_in_beam(statement.span.first_word))
        match statement:
            case ast.KeepBest(count=count, by=by):
                self._count(count, "how many branches to keep", scope)
                self._inference.expect(by, shapes.Float(), "what branches are ranked by", scope, "a number")
            case ast.KeepFirst(count=count):
                self._count(count, "how many branches to keep", scope)
            case ast.KeepWhere(condition=condition):
                self._inference.type_of(condition, scope)
                self._goes_on_where(condition, scope)

    def _goes_on_where(self, condition: ast.Expression, scope: Scope) -> None:
        """Narrow variables by a condition without which nothing goes on."""
        scope.own |= joined(scope, [self._inference.narrowed(condition, True, scope).inner()])

    def _adopt(self, statement: ast.Adopt, scope: Scope, context: Context) -> None:
        static = self._inference.type_of(statement.branch, scope)
        if isinstance(static, BranchType):
            self._adopted[id(statement)] = frozenset(static.fields)
            for name, kind in static.fields.items():
                scope.bind(name, kind)
        elif static is None:
            scope.opens = True
        else:
            self._report(faults.not_a_branch(statement.branch.span, name_of(static)))


def _widened(scope: Scope, body: ast.Block) -> Scope:
    """What is known at the start of any round of a loop: nothing of what its body binds."""
    changed = {name: known for name in assigned_in(body) if (known := scope.get(name)) is not None}
    return Scope({name: Variable(None, known.is_certain) for name, known in changed.items()}, scope)


def _types_of(names: Iterable[str], scope: Scope) -> dict[str, Static]:
    """What is known of those of some variables that there are."""
    return {name: known.type for name in sorted(names) if (known := scope.get(name)) is not None}


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
