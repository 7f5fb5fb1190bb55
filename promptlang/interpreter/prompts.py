"""Text, turns and pins: what goes into a prompt without a model call."""

from promptlang.compiler.graph import PinNode, TextNode, TurnNode
from promptlang.interpreter.machine import Machine
from promptlang.interpreter.run import Frame


async def run_text(machine: Machine, node: TextNode, frame: Frame) -> None:
    text = frame.text(node.text)
    frame.prompt.add(text)
    frame.say(text)
    frame.run.observer.text(frame.path, text)


async def run_turn(machine: Machine, node: TurnNode, frame: Frame) -> None:
    frame.begin_turn(node.role)
    try:
        await machine.region(node.body, frame)
    finally:
        frame.end_turn()


async def run_pin(machine: Machine, node: PinNode, frame: Frame) -> None:
    frame.run.pins.append((frame.path, machine.backend.pin(frame.prompt)))
