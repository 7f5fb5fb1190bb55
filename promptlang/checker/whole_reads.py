"""Which branches a program reads whole, with all their variables: printed, returned or given on, not by fields."""

from collections.abc import Iterator
from typing import Any

from promptlang.syntax import ast
from promptlang.syntax.walk import blocks_of, parts_of, statements_of

_FORKS = (ast.ForkCount, ast.ForkEach, ast.ForkArms, ast.Beam)


def read_whole(block: ast.Block) -> frozenset[str]:
    """The names that branches bind which are read whole: nothing need name them to use them."""
    whole = _names_read_whole(block)
    forks = [one for one in statements_of(block) if isinstance(one, _FORKS) and one.name in whole]
    return frozenset(name for fork in forks for body in blocks_of(fork) for name in _bound_in(body))


def _bound_in(block: ast.Block) -> Iterator[str]:
    for statement in statements_of(block):
        for name in (getattr(statement, "target", None), getattr(statement, "name", None)):
            if isinstance(name, str):
                yield name
        yield from getattr(statement, "targets", ())


def _names_read_whole(block: ast.Block) -> set[str]:
    whole: set[str] = set()
    aliases: list[tuple[str, str]] = []
    for statement in statements_of(block):
        match statement:
            case ast.Assign(target=target, value=value) if (root := _root(value)) is not None:
                aliases.append((target, root))
                continue
            case ast.For(targets=targets, iterable=iterable) | ast.ForkEach(targets=targets, iterable=iterable):
                root = _root(iterable)
                aliases += [(target, root) for target in targets if root is not None]
                if root is not None:
                    continue
            case ast.Adopt():
                continue
        for part in parts_of(statement):
            _read(part, whole, aliases)
    for name, source in reversed(aliases):
        if name in whole:
            whole.add(source)
    return whole


def _read(value: Any, whole: set[str], aliases: list[tuple[str, str]]) -> None:
    """Take down the names that stand whole in an expression."""
    waiting: list[tuple[Any, bool]] = [(value, True)]
    while waiting:
        part, is_whole = waiting.pop()
        match part:
            case ast.Statement():
                continue
            case ast.Name(name=name):
                if is_whole:
                    whole.add(name)
            case ast.Attribute(value=owner):
                waiting.append((owner, False))
            case ast.Index(value=owner, index=index):
                waiting += [(owner, is_whole), (index, True)]
            case ast.Comprehension(iterable=iterable, targets=targets) if (root := _root(iterable)) is not None:
                aliases += [(target, root) for target in targets]
                waiting += [(inner, True) for inner in parts_of(part) if inner is not iterable]
            case _:
                waiting += [(inner, True) for inner in parts_of(part)]


def _root(expression: ast.Expression) -> str | None:
    """The name that an expression is an item or a part of the list of, or that it is."""
    while isinstance(expression, ast.Index | ast.Slice):
        expression = expression.value
    return expression.name if isinstance(expression, ast.Name) else None
