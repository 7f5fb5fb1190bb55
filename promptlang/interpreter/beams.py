"""`beam`: a search in rounds over branches (Lowerre, The Harpy Speech Recognition System, 1976)."""

from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from promptlang.compiler.graph import BeamNode
from promptlang.interpreter.branches import PathValue
from promptlang.interpreter.forks import branch_frame, check_alive, rank_of, run_branch_body, run_branches
from promptlang.interpreter.machine import Machine, located
from promptlang.interpreter.run import Frame, RunError
from promptlang.interpreter.values import is_whole
from promptlang.syntax.ast import Expression
from promptlang.syntax.limits import MOST_BRANCHES
from promptlang.values.values import render_text

PathBody: TypeAlias = Callable[[Frame], Coroutine[Any, None, float]]
"""What a branch of a round does, given its frame; gives what it is ranked by."""


@dataclass(frozen=True)
class _Size:
    """Rounds, the paths that go on after each, and the ways each path forks."""

    depth: int
    width: int
    branch: int


async def run_beam(machine: Machine, node: BeamNode, frame: Frame) -> None:
    await beam(machine, node, frame, partial(_path, machine, node))


async def beam(machine: Machine, node: BeamNode, frame: Frame, body: PathBody) -> None:
    """Search from a frame, and bind the best paths."""
    size = _size(node, frame)
    frontier: list[tuple[Frame, PathValue | None]] = [(frame, None)]
    key = frame.fork_key(node.name)
    for number in range(size.depth):
        check_alive(len(frontier) * size.branch, node, frame)
        frames = _children([parent for parent, _ in frontier], node, number, size.branch, frame.path, key)
        for parent, path in frontier:
            if path is not None or node.ends_prompt:
                parent.prompt.release()
        values = await run_branches(machine, frames, [partial(_survivor, node, size.width, body)] * len(frames))
        frontier = [(child, path) for child, path in zip(frames, values, strict=True) if isinstance(path, PathValue)]
    frame.tokens += sum(path.tokens for path, _ in frontier if path is not frame)
    best = sorted((path for _, path in frontier if path is not None), key=lambda path: -path.score)
    if not node.keeps_prompts:
        for path in best:
            path.prompt.release()
    frame.bind(node.name, [replace(path, index=rank) for rank, path in enumerate(best)])


def _children(
    parents: list[Frame], node: BeamNode, number: int, branch: int, path: tuple[str, ...], key: tuple[int | str, ...]
) -> list[Frame]:
    """The branches of a round, those of one parent beside one another."""
    children: list[Frame] = []
    for parent in parents:
        for way in range(branch):
            label = f"{node.name}[{number}][{len(children)}]"
            above = key if number == 0 else parent.key
            child = branch_frame(parent, (*path, label), (*above, f"round {number}", way))
            if number:
                child.start, child.own, child.tokens = parent.start, set(parent.own), parent.tokens
            children.append(child)
    return children


async def _path(machine: Machine, node: BeamNode, frame: Frame) -> float:
    """Run one branch of a round; gives what it is ranked by."""
    await run_branch_body(machine, node.body, frame)
    with located(node, frame):
        return rank_of(node.by, frame, "beam")


async def _survivor(node: BeamNode, width: int, body: PathBody, frame: Frame) -> PathValue:
    """One branch of a round; it ends here unless it is among the best."""
    score = await body(frame)
    assert frame.branch is not None
    await frame.branch.arrive_best(node.id, width, score)
    return PathValue(frame.branch.index, frame.variables, frame.said, frame.start, frame.prompt, frame.scope, score)


def _size(node: BeamNode, frame: Frame) -> _Size:
    size = _Size(_number(node.depth, frame), _number(node.width, frame), _number(node.branch, frame))
    count = size.depth * size.width * size.branch
    if count > MOST_BRANCHES:
        raise RunError(f"a beam has at most {MOST_BRANCHES} branches in all, not {count}", node.span, frame.path)
    return size


def _number(expression: Expression, frame: Frame) -> int:
    value = frame.value(expression)
    if not is_whole(value) or value < 1:
        raise RunError(f"a beam needs whole numbers, at least 1, not {render_text(value)}", expression.span, frame.path)
    return int(value)
