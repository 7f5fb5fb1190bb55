"""Values of variables: `let`, `log`, and what loops and forks go through."""

from typing import Any

from promptlang.compiler.graph import LetNode, LogNode
from promptlang.diagnostics.source import Span
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.run import Frame, RunError
from promptlang.syntax.ast import Expression
from promptlang.values.values import render_text


async def run_let(machine: Machine, node: LetNode, frame: Frame) -> None:
    frame.bind(node.target, frame.value(node.value))


async def run_log(machine: Machine, node: LogNode, frame: Frame) -> None:
    frame.run.observer.log(frame.path, render_text(frame.value(node.value)))


def items_of(iterable: Expression, frame: Frame) -> list[Any]:
    """What a loop or a fork goes through, one item a round."""
    value = frame.value(iterable)
    if not isinstance(value, list | str | dict):
        raise RunError(f"can't go through {render_text(value)!r}: it is no list", iterable.span, frame.path)
    return list(value)


def unpack(targets: tuple[str, ...], item: Any, frame: Frame, span: Span) -> None:
    """Bind an item to a name, or its items to several."""
    if len(targets) == 1:
        frame.bind(targets[0], item)
        return
    if not isinstance(item, list) or len(item) != len(targets):
        raise RunError(f"can't unpack {render_text(item)!r} into {len(targets)} names", span, frame.path)
    for name, value in zip(targets, item, strict=True):
        frame.bind(name, value)


def is_whole(value: Any) -> bool:
    """Whether a value is a whole number (`true` is none)."""
    return isinstance(value, int) and not isinstance(value, bool)
