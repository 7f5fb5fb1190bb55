"""Calls of tools: host functions that run in threads, beside the model and other branches."""

from promptlang.compiler.graph import ToolNode
from promptlang.interpreter.host_functions import ToolError, call
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.programs import bound
from promptlang.interpreter.run import Frame, RunError
from promptlang.interpreter.tasks import TaskCancelled


async def run_tool(machine: Machine, node: ToolNode, frame: Frame) -> None:
    """Call a tool and wait for it, so that effects keep the order of the program."""
    tool = node.tool
    given = {name: frame.value(value) for name, value in node.arguments.items()}
    arguments = bound(tool, given, node.span, frame.path)
    function = machine.tools.get(tool.name)
    if function is None:
        raise RunError(f"nobody gave a function for the tool `{tool.name}`", node.span, frame.path)
    running = machine.loop.threads.run(lambda: call(tool, function, arguments))
    try:
        with frame.away():
            value = await running
    except TaskCancelled:
        machine.loop.threads.abandon(running)
        raise
    except ToolError as error:
        raise RunError(str(error), node.span, frame.path) from error
    frame.bind(node.target, value)
