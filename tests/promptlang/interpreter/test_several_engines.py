"""Several engines under one interpreter: each program on the model that it names."""

from dataclasses import replace

import pytest
from program_runner import graphs_of
from tiny_engine import kv_bytes, tiny_engine, tiny_loaded

from promptlang.interpreter.interpreter import Interpreter, UnknownModelError
from promptlang.interpreter.loop import EngineLoop
from promptlang.interpreter.tasks import Future
from promptlang.runtime.engine import Engine, EngineOptions
from promptlang.runtime.local_backend import LocalBackend
from promptlang.values.conversion import to_json

PANEL = graphs_of(
    """
    program main(word: str) -> list[str]:
        first = judge(word)
        second = judge(word + "s")
        "The ${word}"
        said = gen(max_tokens=6, temperature=1)
        return [said, first, second]

    program judge(word: str) -> str:
        "Is it good? ${word}"
        said = gen(max_tokens=6, temperature=1)
        return said
    """
)


def other_engine() -> Engine:
    return Engine(tiny_loaded(seed=3), EngineOptions(kv_bytes=kv_bytes(4096)))


def test_a_called_program_runs_on_the_model_that_it_names() -> None:
    engine, other = tiny_engine(), other_engine()
    graphs = {**PANEL, "judge": replace(PANEL["judge"], on="judge")}
    mine = Interpreter(EngineLoop(LocalBackend(engine), {"judge": LocalBackend(other)}), graphs)
    said, *judged = to_json(mine.wait(mine.start("main", {"word": "fox"})).result)
    on_first, on_other = (Interpreter(LocalBackend(one), PANEL) for one in (tiny_engine(), other_engine()))
    here = to_json(on_first.wait(on_first.start("main", {"word": "fox"})).result)
    there = to_json(on_other.wait(on_other.start("main", {"word": "fox"})).result)
    assert said == here[0]
    assert judged == there[1:]
    assert here != there
    assert engine.usage.forwards == 6
    assert other.usage.forwards == 7, "the second call waits a pass for what it shares with the first"
    engine.check()
    other.check()


def test_models_take_turns() -> None:
    order: list[str] = []

    class Noted:
        def __init__(self, name: str, passes: int) -> None:
            self.name, self.left = name, passes

        def step(self) -> bool:
            if not self.left:
                return False
            self.left -= 1
            order.append(self.name)
            return True

    loop = EngineLoop(Noted("a", 2), {"b": Noted("b", 4)})  # type: ignore[arg-type, dict-item]
    with pytest.raises(RuntimeError, match="every branch waits"):
        loop.wait(Future())
    assert order == ["a", "b", "a", "b", "b", "b"]


def test_a_program_on_a_model_that_was_not_given_does_not_start() -> None:
    graphs = {**PANEL, "judge": replace(PANEL["judge"], on="big")}
    engine = tiny_engine()
    mine = Interpreter(EngineLoop(LocalBackend(engine), {"small": LocalBackend(other_engine())}), graphs)
    with pytest.raises(UnknownModelError, match=r"judge runs on the model `big`.*`small`"):
        mine.start("main", {"word": "fox"})
    assert not engine.step()
