"""Where `require` goes back to: the first statement of its block that can give what the condition reads another value.

This is a backward slice (Weiser, Program Slicing, 1981) of the block, cut where the model is asked: from the condition
back along what each value is computed from, to the answers that it comes from.
"""

from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from promptlang.checker.tables import Checked, FragmentInfo, ProgramInfo
from promptlang.syntax import ast
from promptlang.syntax.walk import bound_by, named, names_in, statements_of

Adopted = Mapping[int, frozenset[str]]
"""What each `adopt` binds, by the id of the statement."""


def checkpoint(
    block: ast.Block,
    end: int,
    condition: ast.Expression,
    variables: AbstractSet[str],
    checked: Checked,
    adopted: Adopted,
) -> int | None:
    """The statement that a `require` goes back to.

    Args:
        block: where it stands.
        end: its place there.
        condition: what it requires.
        variables: the names that are bound anywhere; those of parameters and constants are not looked for.

    Returns:
        A place in the block, before `end`; None where nothing in the block gives the condition its value.
    """
    search = _Search(variables, checked, adopted, set(names_in(condition) & variables))
    found = None
    for index in range(end - 1, -1, -1):
        if not search.needed:
            break
        if search.gives(block[index]):
            found = index
    return found


@dataclass
class _Search:
    """Goes through statements backwards.

    Attributes:
        variables: the names that may be looked for.
        needed: those whose values are.
    """

    variables: AbstractSet[str]
    checked: Checked
    adopted: Adopted
    needed: set[str] = field(default_factory=set)

    def gives(self, statement: ast.Statement, *, surely: bool = True) -> bool:
        """Whether a statement, or one in it, binds what is needed; then goes on with what that comes from.

        Args:
            surely: whether the statement runs whenever the block does.
        """
        match statement:
            case ast.Role(body=body):
                return self._any(body, surely)
            case ast.If(branches=branches, otherwise=otherwise):
                found = [self._any(body, False) for body in (*(body for _, body in branches), otherwise)]
                return self._given(any(found), names_in([condition for condition, _ in branches]))
            case ast.For(targets=targets, iterable=iterable, body=body):
                found = [self._any(body, False), not self.needed.isdisjoint(targets)]
                return self._given(any(found), names_in(iterable))
            case ast.While(condition=condition, body=body):
                return self._given(self._any(body, False), names_in(condition))
        names = self._bound_by(statement)
        if self.needed.isdisjoint(names):
            return False
        if surely:
            self.needed -= names
        return self._given(True, self._sources(statement))

    def _any(self, block: ast.Block, surely: bool) -> bool:
        found = [self.gives(statement, surely=surely) for statement in reversed(block)]
        return any(found)

    def _given(self, found: bool, sources: Iterable[str]) -> bool:
        if found:
            self.needed |= self.variables & set(sources)
        return found

    def _bound_by(self, statement: ast.Statement) -> frozenset[str]:
        if isinstance(statement, ast.Adopt):
            return self.adopted.get(id(statement), frozenset(self.needed))
        return bound_by(statement)

    def _sources(self, statement: ast.Statement) -> frozenset[str]:
        """What a value is computed from; nothing where the model gives it, for it can give another one."""
        match statement:
            case ast.Assign(value=ast.CallExpression() as call) if _runs_something(call, self.checked):
                return frozenset()
            case ast.Assign(value=value):
                return names_in(value)
            case ast.Adopt(branch=branch):
                return names_in(branch)
        return frozenset()


def samples(statements: Iterable[ast.Statement], checked: Checked) -> bool:
    """Whether running statements again may give something else: an answer in them, or in a program that they call, is
    drawn at random, or a tool is called, which may do so. All bodies must be checked: then what they call is known."""
    return any(_may_differ(statement, checked) for statement in _run_by(statements, checked))


def _run_by(statements: Iterable[ast.Statement], checked: Checked) -> Iterator[ast.Statement]:
    """The statements, all in them, and all of the fragments and programs that they run, those of each once."""
    seen: set[FragmentInfo | ProgramInfo] = set()
    waiting = [statements]
    while waiting:
        for statement in statements_of(waiting.pop()):
            yield statement
            info = checked.fragments.get(id(statement)) or _callee(statement, checked)
            if info is not None and info not in seen:
                seen.add(info)
                waiting.append(info.declaration.body)


def _callee(statement: ast.Statement, checked: Checked) -> ProgramInfo | None:
    match statement:
        case ast.Assign(value=ast.CallExpression() as call) | ast.Call(call=call):
            return checked.callee(call)
    return None


def _may_differ(statement: ast.Statement, checked: Checked) -> bool:
    match statement:
        case ast.Ask(answer=ast.Gen(options=options) | ast.Select(options=options)):
            given = named(options)
            temperature = given.get("temperature")
            is_greedy = temperature is None or (isinstance(temperature, ast.Literal) and temperature.value == 0)
            return not is_greedy and "seed" not in given
        case ast.Assign(value=ast.CallExpression() as call) | ast.Call(call=call):
            return checked.tool(call) is not None
    return False


def _runs_something(call: ast.CallExpression, checked: Checked) -> bool:
    """Whether a call runs a program or a tool."""
    return checked.callee(call) is not None or checked.tool(call) is not None
