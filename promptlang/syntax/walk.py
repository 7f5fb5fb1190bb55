"""Ways through an AST: what lies inside statements and expressions, and which names they read and bind.

None of them goes deeper into Python's stack for a longer program, only for one that nests deeper.
"""

from collections.abc import Iterable, Iterator
from dataclasses import fields
from functools import cache
from typing import Any

from promptlang.syntax import ast

_PLACES = {"span", "name_span", "source"}
_GROUPS = (tuple, list)
_NESTING = (ast.Statement, ast.Expression, ast.TypeExpression)
_HOLDING = (ast.AstNode, *_GROUPS)

# Expressions -----------------------------------------------------------------------------------------


def parts_of(value: Any) -> list[Any]:
    """What lies right inside an AST node, a tuple or a list; nothing inside anything else."""
    if isinstance(value, ast.AstNode):
        kind: Any = type(value)
        return [getattr(value, name) for name in _part_names(kind)]
    return list(value) if isinstance(value, _GROUPS) else []


@cache
def _part_names(kind: Any) -> list[str]:
    return [item.name for item in fields(kind) if item.name not in _PLACES]


def deepest(value: Any) -> tuple[int, ast.AstNode | None]:
    """How many statements, expressions and types stand inside each other, and the innermost of them.

    Args:
        value: an AST node or a tuple of them.
    """
    depth, innermost = 0, None
    stack = [(value, 0)]
    while stack:
        value, level = stack.pop()
        if isinstance(value, _NESTING):
            level += 1
            if level > depth:
                depth, innermost = level, value
        stack += [(part, level) for part in parts_of(value) if isinstance(part, _HOLDING)]
    return depth, innermost


def names_in(*values: Any) -> frozenset[str]:
    """The names of variables that expressions read (names bound inside a comprehension are not among them)."""
    found: set[str] = set()
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, ast.Name):
            found.add(value.name)
        elif isinstance(value, ast.Comprehension):
            found |= names_in(value.item, value.condition) - set(value.targets)
            stack.append(value.iterable)
        else:
            stack += parts_of(value)
    return frozenset(found)


def dotted_name(expression: ast.Expression) -> str | None:
    """`name` or `name.name`, where the expression is just that."""
    match expression:
        case ast.Name(name=name):
            return name
        case ast.Attribute(value=ast.Name(name=owner), name=name):
            return f"{owner}.{name}"
    return None


def named(arguments: Iterable[ast.Argument]) -> dict[str, ast.Expression]:
    """The arguments that have a name, by it."""
    return {argument.name: argument.value for argument in arguments if argument.name is not None}


def positional(arguments: Iterable[ast.Argument]) -> list[ast.Expression]:
    """The arguments without a name, in order."""
    return [argument.value for argument in arguments if argument.name is None]


# Statements ------------------------------------------------------------------------------------------


def blocks_of(statement: ast.Statement) -> tuple[ast.Block, ...]:
    """The blocks inside a statement, in order."""
    match statement:
        case ast.If(branches=branches, otherwise=otherwise):
            return (*(body for _, body in branches), otherwise)
        case ast.ForkArms(arms=arms):
            return tuple(arm.body for arm in arms)
        case ast.Role() | ast.For() | ast.While() | ast.ForkCount() | ast.ForkEach() | ast.Beam():
            return (statement.body,)
    return ()


def statements_of(block: Iterable[ast.Statement]) -> Iterator[ast.Statement]:
    """All statements of a block, at any depth, in order."""
    stack = list(block)[::-1]
    while stack:
        statement = stack.pop()
        yield statement
        stack.extend(inner for body in reversed(blocks_of(statement)) for inner in reversed(body))


def has_turns(block: ast.Block) -> bool:
    """Whether a block has chat turns, at any depth."""
    return any(isinstance(statement, ast.Role) for statement in statements_of(block))


def adds_nothing(statement: ast.Statement) -> bool:
    """Whether a prompt stays as it is, as far as the statement alone says."""
    is_score = isinstance(statement, ast.Ask) and isinstance(statement.answer, ast.Score)
    return is_score or isinstance(statement, ast.Assign | ast.Call | ast.Log | ast.Pass | ast.Pin | ast.Require)


def begins_with_answer(statement: ast.Statement) -> bool:
    """Whether what comes next in the prompt is, or may be, an answer."""
    if isinstance(statement, ast.Ask):
        return not isinstance(statement.answer, ast.Score)
    blocks = () if isinstance(statement, ast.Role) else blocks_of(statement)
    first = [next((inner for inner in block if not adds_nothing(inner)), None) for block in blocks]
    return any(inner is not None and begins_with_answer(inner) for inner in first)


def keeps_in(block: ast.Block) -> Iterator[ast.Statement]:
    """The `keep`s that prune the branch a block belongs to: not those of forks inside."""
    for statement in block:
        if isinstance(statement, ast.KeepBest | ast.KeepWhere | ast.KeepFirst):
            yield statement
        elif not isinstance(statement, ast.ForkCount | ast.ForkEach | ast.ForkArms | ast.Beam):
            for body in blocks_of(statement):
                yield from keeps_in(body)


def bound_by(statement: ast.Statement) -> frozenset[str]:
    """The variables that a statement itself binds; what an `adopt` brings is not among them."""
    match statement:
        case ast.Ask(target=str() as name) | ast.Assign(target=name):
            return frozenset({name})
        case ast.For(targets=targets):
            return frozenset(targets)
        case ast.ForkCount(name=name) | ast.ForkEach(name=name) | ast.ForkArms(name=name) | ast.Beam(name=name):
            return frozenset({name})
    return frozenset()


def bound_in(block: ast.Block) -> set[str]:
    """All variables of a block and of the branches in it."""
    found: set[str] = set()
    for statement in statements_of(block):
        found |= bound_by(statement)
        if isinstance(statement, ast.ForkEach):
            found |= set(statement.targets)
    return found


def assigned_in(block: ast.Block) -> set[str]:
    """The variables that a block may bind; what a fork's branches bind is not among them, unless one is adopted."""
    adopts = any(isinstance(statement, ast.Adopt) for statement in statements_of(block))
    found: set[str] = set()
    stack = list(block)
    while stack:
        statement = stack.pop()
        found |= bound_by(statement)
        is_fork = isinstance(statement, ast.ForkCount | ast.ForkEach | ast.ForkArms | ast.Beam)
        if adopts or not is_fork:
            stack.extend(inner for body in blocks_of(statement) for inner in body)
    return found
