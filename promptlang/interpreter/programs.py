"""Programs, the programs that they call, fragments, and what they return."""

from contextlib import suppress
from dataclasses import replace
from typing import Any

from promptlang.compiler.graph import CallNode, ReturnNode, StartNode, UseNode
from promptlang.diagnostics.source import Span
from promptlang.grammar.reader import validate
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.run import Frame, Run, RunError
from promptlang.runtime.requests import WatcherError
from promptlang.syntax.limits import MOST_CALLS
from promptlang.values.conversion import ArgumentsError, Signature, bind_arguments, from_json, to_json
from promptlang.values.expressions import evaluate
from promptlang.values.values import Value

DEEPEST_CALL = 64


class _Return(Exception):
    """`return` on its way to its program."""

    def __init__(self, value: Value) -> None:
        self.value = value


async def run_program(machine: Machine, frame: Frame) -> Value:
    """Run a program to its end; gives its result."""
    try:
        await machine.region(frame.graph.body, frame)
        await machine.join(frame)
    except _Return as returned:
        await machine.join(frame)
        return returned.value
    finally:
        machine.leave(frame)
    return frame.variables


async def run_call(machine: Machine, node: CallNode, frame: Frame) -> None:
    """Start a program on a prompt of its own; who reads its result waits for it."""
    if node.is_started:
        _bind_started(node, frame)
        return
    if len(frame.path) >= DEEPEST_CALL:
        raise RunError(f"calls nest deeper than {DEEPEST_CALL}", node.span, frame.path)
    graph = machine.graphs[node.callee]
    frame.run.calls += 1
    if frame.run.calls > MOST_CALLS:
        message = f"this run calls more than {MOST_CALLS} programs; say where a program stops calling itself"
        raise RunError(message, node.span, frame.path)
    given = {name: frame.value(value) for name, value in node.arguments.items()}
    label = frame.call_label(node.callee, node.skipped)
    path = (*frame.path, label)
    machine = machine.running(graph)
    arguments = bound(graph, given, node.span, path)
    prompt = machine.new_prompt(frame.run, graph.name)
    callee = Frame(frame.run, graph, prompt, arguments, graph.constants, path, (*frame.key, label))
    frame.run.observer.opened(path)
    task = machine.loop.spawn(run_program(machine, callee))
    task.when_done(lambda: _ended(frame.run, path))
    frame.pending.append(task)
    frame.bind(node.target, task)


def _ended(run: Run, path: tuple[str, ...]) -> None:
    """The run itself says at its end that its observer failed."""
    with suppress(WatcherError):
        run.observer.ended(path)


async def run_start(machine: Machine, node: StartNode, frame: Frame) -> None:
    """Start a program before the place where its result is bound."""
    await run_call(machine, replace(node.call, target=None), frame)
    frame.started[node.call.id] = frame.pending[-1]


def _bind_started(node: CallNode, frame: Frame) -> None:
    """Bind a call that runs already; from here on it is as if it began here."""
    task = frame.started.pop(node.id)
    frame.pending.remove(task)
    frame.pending.append(task)
    frame.bind(node.target, task)


def bound(callee: Signature, given: dict[str, Any], span: Span, path: tuple[str, ...]) -> dict[str, Any]:
    """The parameters of a program or a tool with their values.

    Raises:
        RunError: an argument does not fit.
    """
    try:
        return bind_arguments(callee, given)
    except ArgumentsError as error:
        raise RunError(str(error), span, path) from error


async def run_use(machine: Machine, node: UseNode, frame: Frame) -> None:
    scope = {name: frame.value(value) for name, value in node.arguments.items()}
    for parameter in node.parameters:
        if parameter.name not in scope:
            assert parameter.default is not None
            scope[parameter.name] = evaluate(parameter.default, node.constants)
    outer = frame.scope, frame.own, frame.constants
    frame.scope, frame.own, frame.constants = scope, set(), node.constants
    try:
        await machine.region(node.body, frame)
    finally:
        frame.scope, frame.own, frame.constants = outer


async def run_return(machine: Machine, node: ReturnNode, frame: Frame) -> None:
    raise _Return(_promised(node, frame))


def _promised(node: ReturnNode, frame: Frame) -> Value:
    """The result, as the program's header says it looks."""
    value: Value = frame.value(node.value)
    shape = frame.graph.returns
    if shape is None:
        return value
    data = to_json(value)
    try:
        validate(shape, data)
    except ValueError as error:
        message = f"the result is not what {frame.graph.name} promises: {error}"
        raise RunError(message, node.span, frame.path) from error
    return from_json(shape, data)
