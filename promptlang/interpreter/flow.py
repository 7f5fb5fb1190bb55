"""Conditions, loops and `require`."""

from promptlang.compiler.graph import ForNode, IfNode, JumpNode, Region, RequireNode, WhileNode
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.run import Checkpoint, Frame, RunError
from promptlang.interpreter.values import is_whole, items_of, unpack
from promptlang.syntax.limits import MOST_RETRIES
from promptlang.values.values import render_text

DEFAULT_ROUNDS = 64


class _Jump(Exception):
    """`break` or `continue` on its way to its loop."""

    def __init__(self, kind: str) -> None:
        self.kind = kind


async def run_if(machine: Machine, node: IfNode, frame: Frame) -> None:
    for condition, body in zip(node.conditions, node.bodies, strict=True):
        if frame.value(condition):
            await machine.region(body, frame)
            return
    await machine.region(node.otherwise, frame)


async def run_for(machine: Machine, node: ForNode, frame: Frame) -> None:
    for item in items_of(node.iterable, frame):
        unpack(node.targets, item, frame, node.span)
        if not await _round(machine, node.body, frame):
            return


async def run_while(machine: Machine, node: WhileNode, frame: Frame) -> None:
    limit = DEFAULT_ROUNDS if node.limit is None else frame.value(node.limit)
    for _ in range(limit):
        if not frame.value(node.condition):
            return
        if not await _round(machine, node.body, frame):
            return
        await machine.settle(node.reads, frame)
    if node.limit is None and frame.value(node.condition):
        raise RunError(
            f"the loop did not end in {limit} rounds; say `limit N` where more are meant",
            node.span,
            frame.path,
        )


async def run_require(machine: Machine, node: RequireNode, frame: Frame) -> None:
    retries = _retries(node, frame)
    checkpoint = Checkpoint(frame)
    try:
        for left in range(retries, -1, -1):
            await machine.region(node.body, frame)
            await machine.settle(node.reads, frame)
            if machine.is_met(bool(frame.value(node.condition)), left):
                return
            if left:
                frame.run.observer.retried(frame.path, f"{_condition(node)} is not met")
                checkpoint.restore()
        raise RunError(_unmet(node, retries, frame), node.span, frame.path)
    finally:
        checkpoint.release()


def _retries(node: RequireNode, frame: Frame) -> int:
    retries = frame.value(node.retries)
    if not is_whole(retries) or not 0 <= retries <= MOST_RETRIES:
        raise RunError(
            f"retry needs a count from 0 to {MOST_RETRIES}, not {render_text(retries)}", node.retries.span, frame.path
        )
    return int(retries)


def _condition(node: RequireNode) -> str:
    return f"`{' '.join(node.condition.span.text.split())}`"


def _unmet(node: RequireNode, retries: int, frame: Frame) -> str:
    what = f"{_condition(node)} is not met" if node.message is None else frame.text(node.message)
    return f"{what} (after {retries} retries)" if retries else what


async def _round(machine: Machine, body: Region, frame: Frame) -> bool:
    """One round of a loop; False after `break`."""
    try:
        await machine.region(body, frame)
    except _Jump as jump:
        return jump.kind == "continue"
    return True


async def run_jump(machine: Machine, node: JumpNode, frame: Frame) -> None:
    raise _Jump(node.kind)
