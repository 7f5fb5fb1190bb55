"""Branches: `fork`, `keep` and `adopt`. Who lives at a `keep` is decided in `branches.py`."""

from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from promptlang.compiler.graph import AdoptNode, ForkNode, KeepNode, Node, Region
from promptlang.compiler.walk import keeps_in
from promptlang.interpreter.branches import BranchGroup, BranchValue, Pruned
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.run import Frame, Run, RunError
from promptlang.interpreter.tasks import TaskCancelled
from promptlang.interpreter.values import is_whole, items_of, unpack
from promptlang.syntax.ast import Expression
from promptlang.syntax.limits import MOST_BRANCHES, MOST_BRANCHES_ALIVE
from promptlang.values.values import RecordValue, render_text

BranchBody: TypeAlias = Callable[[int, Frame], Coroutine[Any, None, BranchValue]]
"""What a branch does, given its number and its frame."""


async def run_fork(machine: Machine, node: ForkNode, frame: Frame) -> None:
    await fork(machine, node, frame, partial(_branch, machine, node))


async def fork(machine: Machine, node: ForkNode, frame: Frame, body: BranchBody) -> None:
    """Run branches from a frame, and bind those that are kept."""
    items = _fork_items(node, frame)
    check_alive(1 if node.is_merged else len(items), node, frame)
    frames = await _branch_frames(machine, node, items, frame)
    if node.ends_prompt:
        frame.prompt.release()
    is_race = any(keep.kind == "first" for region in node.bodies for keep in keeps_in(region))
    values = await run_branches(machine, frames, [partial(body, index) for index in range(len(frames))], is_race)
    tokens = sum(branch.tokens for branch, value in zip(frames, values, strict=True) if value is not None)
    frame.tokens += tokens * len(items) if node.is_merged else tokens  # a pass must not change who comes first
    if frames and not any(values) and not node.allow_none:
        raise RunError(f"keep left no branch of {node.name}; say `or none` where that may be", node.span, frame.path)
    _bind_branches(node, _copied(values, len(items)) if node.is_merged else values, frame)


def _fork_items(node: ForkNode, frame: Frame) -> list[Any]:
    """What tells the branches apart, one item a branch."""
    if node.kind == "arms":
        return list(node.arms)
    assert node.over is not None
    return _branch_items(node.over, frame) if node.kind == "count" else items_of(node.over, frame)


async def _branch_frames(machine: Machine, node: ForkNode, items: list[Any], frame: Frame) -> list[Frame]:
    key = frame.fork_key(node.name)
    start = await _fork_head(machine, node, frame) if node.head.nodes and items else frame
    frames = []
    for index, item in enumerate(items[:1] if node.is_merged else items):
        name = item if node.kind == "arms" else index
        label = f"{node.name}.{item}" if node.kind == "arms" else f"{node.name}[{index}]"
        branch = branch_frame(start, (*frame.path, label), (*key, name))
        if start is not frame:
            branch.start = start.start
        if node.kind == "each":
            unpack(node.targets, item, branch, node.span)
        frames.append(branch)
    if start is not frame:
        start.prompt.release()
    return frames


async def _fork_head(machine: Machine, node: ForkNode, frame: Frame) -> Frame:
    """A frame whose prompt holds what every branch begins with."""
    head = branch_frame(frame, (*frame.path, node.name), frame.key)
    try:
        await machine.region(node.head, head)
    finally:
        machine.leave(head)
    frame.run.observer.ended(head.path)
    return head


def check_alive(more: int, node: Node, frame: Frame) -> None:
    """Whether so many more branches may begin.

    Raises:
        RunError: the run would have too many at once.
    """
    if frame.run.branches + more > MOST_BRANCHES_ALIVE:
        message = (
            f"this run would have more than {MOST_BRANCHES_ALIVE} branches at once; fork into fewer, or one by one"
        )
        raise RunError(message, node.span, frame.path)


def _branch_items(over: Expression, frame: Frame) -> list[Any]:
    count = frame.value(over)
    if not is_whole(count) or not 0 <= count <= MOST_BRANCHES:
        raise RunError(
            f"fork needs a count from 0 to {MOST_BRANCHES}, not {render_text(count)}",
            over.span,
            frame.path,
        )
    return [None] * count


def branch_frame(frame: Frame, path: tuple[str, ...], key: tuple[int | str, ...]) -> Frame:
    """A frame that starts from another's prompt and variables."""
    prompt = frame.prompt.fork()
    frame.run.prompts.append(prompt)
    return Frame(frame.run, frame.graph, prompt, dict(frame.scope), frame.constants, path, key, said=frame.said)


async def run_branches(
    machine: Machine,
    frames: Sequence[Frame],
    bodies: Sequence[Callable[[Frame], Coroutine[Any, None, BranchValue]]],
    is_race: bool = False,
) -> list[BranchValue | None]:
    """Run branches side by side, each by its own body; their values in order, None for one that was pruned.

    Args:
        machine: runs their nodes.
        frames: one a branch.
        bodies: what each does.
        is_race: see `BranchGroup`.

    Raises:
        RunError: a branch failed; its siblings are cancelled.
    """
    group = BranchGroup(machine.loop, is_race)
    for frame, body in zip(frames, bodies, strict=True):
        frame.branch = group.add(partial(_tokens_of, frame))
        task = machine.loop.spawn(_unless_pruned(frame, body))
        frame.run.branches += 1
        frame.run.observer.opened(frame.path)
        task.when_done(partial(_leave, frame.run))
        frame.branch.run(task)
    try:
        await group.finished()
    finally:
        group.cancel()
    return [branch.value for branch in group.branches]


def _tokens_of(frame: Frame) -> int | None:
    return None if frame.is_away else frame.tokens_so_far


def _leave(run: Run) -> None:
    run.branches -= 1


async def _unless_pruned(
    frame: Frame, body: Callable[[Frame], Coroutine[Any, None, BranchValue]]
) -> BranchValue | None:
    try:
        value = await body(frame)
    except Pruned:
        frame.run.observer.pruned(frame.path)
        frame.prompt.release()
        return None
    except TaskCancelled:
        frame.run.observer.pruned(frame.path)
        frame.prompt.release()
        raise
    frame.run.observer.ended(frame.path)
    return value


async def _branch(machine: Machine, node: ForkNode, index: int, frame: Frame) -> BranchValue:
    await run_branch_body(machine, node.bodies[index if node.kind == "arms" else 0], frame)
    if not node.keeps_prompts:
        frame.prompt.release()
    return BranchValue(index, frame.variables, frame.said, frame.start, frame.prompt, frame.scope)


async def run_branch_body(machine: Machine, body: Region, frame: Frame) -> None:
    """Run what a branch does, to the end of the calls that it started."""
    try:
        await machine.region(body, frame)
        await machine.join(frame)
    finally:
        machine.leave(frame)


def _bind_branches(node: ForkNode, values: list[BranchValue | None], frame: Frame) -> None:
    if node.kind == "arms":
        frame.bind(node.name, RecordValue(node.name, dict(zip(node.arms, values, strict=True))))
    else:
        frame.bind(node.name, [value for value in values if value is not None])


async def run_keep(machine: Machine, node: KeepNode, frame: Frame) -> None:
    branch = frame.branch
    assert branch is not None, "the checker lets `keep` stand only in a fork"
    if node.kind == "where":
        assert node.by is not None
        if not frame.value(node.by):
            raise Pruned
        return
    assert node.count is not None
    count = frame.value(node.count)
    if not is_whole(count) or count < 0:
        raise RunError(
            f"keep needs a whole number of branches, not {render_text(count)}",
            node.count.span,
            frame.path,
        )
    if node.kind == "first":
        await branch.arrive_first(node.id, count)
        return
    assert node.by is not None
    await branch.arrive_best(node.id, count, rank_of(node.by, frame, "keep"))


def rank_of(by: Expression, frame: Frame, what: str) -> float:
    """The number that a branch is ranked by."""
    score = frame.value(by)
    if not isinstance(score, int | float) or score != score:
        raise RunError(f"{what} ranks by a number, not {render_text(score)!r}", by.span, frame.path)
    return float(score)


async def run_adopt(machine: Machine, node: AdoptNode, frame: Frame) -> None:
    branch = frame.value(node.branch)
    if not isinstance(branch, BranchValue):
        raise RunError("adopt needs a branch that survived its fork", node.span, frame.path)
    frame.prompt.release()
    frame.prompt = branch.prompt.fork()
    frame.run.prompts.append(frame.prompt)
    frame.scope.update(branch.scope)
    frame.own.update(branch.fields)
    frame.said = branch.said
    frame.run.observer.adopted(frame.path, branch.index)


def _copied(values: list[BranchValue | None], count: int) -> list[BranchValue | None]:
    """The one branch that ran, `count` times."""
    return [replace(value, index=index) for value in values if value is not None for index in range(count)]
