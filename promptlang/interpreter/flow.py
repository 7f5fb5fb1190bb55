"""Conditions and loops."""

from promptlang.graph import ForNode, IfNode, JumpNode, Region, WhileNode
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.run import Frame, RunError
from promptlang.interpreter.values import items_of, unpack

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


async def _round(machine: Machine, body: Region, frame: Frame) -> bool:
    """One round of a loop; False after `break`."""
    try:
        await machine.region(body, frame)
    except _Jump as jump:
        return jump.kind == "continue"
    return True


async def run_jump(machine: Machine, node: JumpNode, frame: Frame) -> None:
    raise _Jump(node.kind)
