"""One loop for many: several interpreters and threads on one engine."""

import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from threading import Event
from typing import Any

import pytest
from program_runner import graphs_of
from tiny_engine import tiny_engine

from promptlang.interpreter.interpreter import Interpreter
from promptlang.interpreter.loop import EngineLoop, RunCancelled
from promptlang.interpreter.observer import SilentObserver
from promptlang.interpreter.run import RunError
from promptlang.interpreter.tasks import Future
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.requests import WatcherError
from promptlang.values.conversion import to_json

PATIENCE = 60
"""Seconds after which something that should happen has not."""

PROGRAMS = graphs_of(
    """
    tool shout(word: str) -> str

    program say(word: str) -> str:
        "The ${word} says"
        said = gen(max_tokens=8, temperature=1)
        return said

    program pick(word: str) -> str:
        "Is ${word} a fox or a dog? A"
        animal = select(" fox", " dog")
        return animal

    program many(word: str) -> list[str]:
        "Of ${word} we say"
        fork 3 as ways:
            " that"
            way = gen(max_tokens=5, temperature=1)
        told = say(word)
        " then"
        last = gen(max_tokens=3)
        return [way.way for way in ways] + [told, last]

    program tell(word: str) -> str:
        loud = shout(word)
        "They shout ${loud}"
        answer = gen(max_tokens=4)
        return answer
    """
)
NAMES = ("say", "pick", "many", "tell")


def shout(word: str) -> str:
    return word.upper()


def interpreter(on: EngineLoop | LocalBackend, seed: int = 0, tool: Callable[[str], str] = shout) -> Interpreter:
    return Interpreter(on, PROGRAMS, seed, tools={"shout": tool})


@cache
def alone(name: str, word: str, seed: int = 0) -> Any:
    one = interpreter(LocalBackend(tiny_engine()), seed)
    return to_json(one.wait(one.start(name, {"word": word})).result)


def test_waiting_on_one_program_moves_those_of_all_interpreters() -> None:
    engine = tiny_engine()
    loop = EngineLoop(LocalBackend(engine))
    first, second = interpreter(loop, 1), interpreter(loop, 2)
    tasks = [first.start("say", {"word": "fox"}), second.start("pick", {"word": "dog"})]
    result = first.wait(tasks[0]).result
    assert tasks[1].is_done
    assert result == alone("say", "fox", 1)
    assert second.wait(tasks[1]).result == alone("pick", "dog", 2)
    assert engine.usage.forwards == 8
    engine.check()


@pytest.mark.slow
def test_four_threads_get_what_each_program_gives_alone() -> None:
    engine = tiny_engine()
    loop = EngineLoop(LocalBackend(engine))

    def work(seed: int) -> list[Any]:
        mine = interpreter(loop, seed)
        tasks = [mine.start(name, {"word": f"fox {seed}"}) for name in NAMES]
        return [to_json(mine.wait(task).result) for task in tasks]

    with ThreadPoolExecutor(4) as threads:
        found = [future.result(PATIENCE) for future in [threads.submit(work, seed) for seed in range(4)]]
    assert found == [[alone(name, f"fox {seed}", seed) for name in NAMES] for seed in range(4)]
    engine.check()


def test_a_thread_whose_run_has_ended_leaves_the_lead_to_those_who_wait() -> None:
    """The tool of the second run returns only once the first thread is gone."""
    loop = EngineLoop(LocalBackend(tiny_engine()))
    gone, waits = Event(), Event()

    def patient(word: str) -> str:
        waits.set()
        assert gone.wait(PATIENCE)
        return word

    first, second = interpreter(loop), interpreter(loop, tool=patient)
    with ThreadPoolExecutor(1) as threads:
        task = second.start("tell", {"word": "owl"})
        other = threads.submit(second.wait, task)
        assert first.wait(first.start("say", {"word": "fox"})).result == alone("say", "fox")
        gone.set()
        other.result(PATIENCE)
    assert waits.is_set()


def test_a_run_that_starts_while_the_leader_waits_for_a_tool_goes_on() -> None:
    """The tool, which the leader waits for, itself runs a program on the same loop."""
    loop = EngineLoop(LocalBackend(tiny_engine()))

    def asks(word: str) -> str:
        inner = interpreter(loop)
        return str(inner.wait(inner.start("pick", {"word": word})).result)

    outer = interpreter(loop, tool=asks)
    with ThreadPoolExecutor(1) as threads:
        threads.submit(lambda: outer.wait(outer.start("tell", {"word": "owl"}))).result(PATIENCE)


@pytest.mark.parametrize("leads", [False, True])
def test_a_run_is_cancelled_from_another_thread(leads: bool) -> None:
    engine = tiny_engine()
    loop = EngineLoop(LocalBackend(engine))
    waits, go = Event(), Event()

    def patient(word: str) -> str:
        waits.set()
        go.wait(PATIENCE)
        return word

    mine = interpreter(loop, tool=patient)
    task = mine.start("tell", {"word": "owl"})
    if leads:
        with ThreadPoolExecutor(1) as threads:
            waiting = threads.submit(mine.wait, task)
            assert waits.wait(PATIENCE)
            mine.cancel(task)
            with pytest.raises(RunCancelled):
                waiting.result(PATIENCE)
    else:
        mine.cancel(task)
        assert task.is_done
        with pytest.raises(RunCancelled):
            mine.wait(task)
    go.set()
    assert mine.wait(mine.start("say", {"word": "fox"})).result == alone("say", "fox")
    engine.check()


def test_what_posted_work_raises_fails_its_future_alone() -> None:
    loop = EngineLoop(LocalBackend(tiny_engine()))
    done = loop.post(lambda: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        loop.wait(done)
    assert loop.wait(loop.post(lambda: 7)) == 7


def test_an_observer_that_waits_for_the_loop_fails_its_run_instead_of_hanging() -> None:
    loop = EngineLoop(LocalBackend(tiny_engine()))
    mine = interpreter(loop)

    class Waits(SilentObserver):
        def answer(self, path: tuple[str, ...], text: str) -> None:
            mine.wait(mine.start("say", {"word": "dog"}))

    with pytest.raises(RunError, match="can't wait"):
        mine.wait(mine.start("say", {"word": "fox"}, observer=Waits()))


def test_a_wait_for_nothing_ends_and_others_go_on() -> None:
    loop = EngineLoop(LocalBackend(tiny_engine()))
    mine = interpreter(loop)
    task = mine.start("say", {"word": "fox"})
    with pytest.raises(RuntimeError, match="every branch waits"):
        loop.wait(Future())
    assert mine.wait(task).result == alone("say", "fox")


def test_a_wait_for_nothing_ends_though_a_cancelled_run_left_a_tool_behind() -> None:
    loop = EngineLoop(LocalBackend(tiny_engine()))
    began, go = Event(), Event()

    def endless(word: str) -> str:
        began.set()
        go.wait(PATIENCE)
        return word

    mine = interpreter(loop, tool=endless)
    with ThreadPoolExecutor(1) as threads:
        task = mine.start("tell", {"word": "owl"})
        waiting = threads.submit(mine.wait, task)
        assert began.wait(PATIENCE)
        mine.cancel(task)
        with pytest.raises(RunCancelled):
            waiting.result(PATIENCE)
        with pytest.raises(RuntimeError, match="every branch waits"):
            threads.submit(loop.wait, Future()).result(PATIENCE)
        go.set()


# Interrupts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", range(1, 12, 2))
def test_an_interrupt_in_a_pass_costs_nobody_their_run(monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    engine = tiny_engine()
    loop = EngineLoop(LocalBackend(engine))
    real, passes, interrupts = engine.step, [0], []

    def step() -> bool:
        passes[0] += 1
        if passes[0] == at:
            raise KeyboardInterrupt
        return real()

    monkeypatch.setattr(engine, "step", step)

    def work(seed: int) -> list[Any]:
        mine = interpreter(loop, seed)
        tasks = [mine.start(name, {"word": "fox"}) for name in NAMES]
        return [to_json(through_interrupts(mine, task)) for task in tasks]

    def through_interrupts(mine: Interpreter, task: Any) -> Any:
        while True:
            try:
                return mine.wait(task).result
            except KeyboardInterrupt:
                interrupts.append(task)

    with ThreadPoolExecutor(3) as threads:
        found = [future.result(PATIENCE) for future in [threads.submit(work, seed) for seed in range(3)]]
    assert len(interrupts) == 1
    assert found == [[alone(name, "fox", seed) for name in NAMES] for seed in range(3)]
    engine.check()


def test_a_run_that_is_interrupted_itself_fails_and_the_others_go_on() -> None:
    engine = tiny_engine()
    loop = EngineLoop(LocalBackend(engine))
    mine = interpreter(loop)

    class Interrupts(SilentObserver):
        def text(self, path: tuple[str, ...], text: str) -> None:
            raise KeyboardInterrupt

    other, doomed = mine.start("many", {"word": "dog"}), mine.start("say", {"word": "fox"}, observer=Interrupts())
    with pytest.raises(KeyboardInterrupt):
        mine.wait(other)
    assert to_json(mine.wait(other).result) == alone("many", "dog")
    with pytest.raises(RuntimeError, match="interrupted"):
        mine.wait(doomed)
    engine.check()


# Faults ----------------------------------------------------------------------------------------------


class Failing(SilentObserver):
    """Raises at one kind of event."""

    def __init__(self, event: str) -> None:
        def fails(*_: object) -> None:
            raise ValueError("the window is closed")

        setattr(self, event, fails)


WATCHED = graphs_of(
    """
    program main() -> str:
        user:
            "The fox"
        unused = other()
        fork 2 as ways:
            assistant:
                way = gen(max_tokens=2, temperature=1)
            keep 1 by len(way)
        log "here"
        return "done"

    program other() -> str:
        "A dog"
        said = gen(max_tokens=1)
        return said
    """
)


@pytest.mark.parametrize("event", ["turn", "text", "prompt", "answer", "ended", "pruned", "log"])
def test_an_observer_that_fails_fails_its_own_run_alone(event: str) -> None:
    engine = tiny_engine()
    loop = EngineLoop(LocalBackend(engine))
    watched, others = Interpreter(loop, WATCHED), interpreter(loop)
    other = others.start("many", {"word": "dog"})
    doomed = watched.start("main", {}, observer=Failing(event))  # type: ignore[arg-type]
    assert to_json(others.wait(other).result) == alone("many", "dog")
    with pytest.raises(RunError, match=r"observer.*the window is closed") as caught:
        watched.wait(doomed)
    assert isinstance(caught.value.__cause__, WatcherError)
    assert watched.wait(watched.start("main", {})).result == "done"
    engine.check()


def test_a_pass_that_fails_is_a_fault_of_the_statement_it_served(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = tiny_engine()
    mine = interpreter(LocalBackend(engine))

    def fails(*_: object) -> None:
        raise RuntimeError("out of memory")

    task = mine.start("many", {"word": "fox"})
    with monkeypatch.context() as patch:
        patch.setattr(type(engine.model), "forward", fails)
        with pytest.raises(RunError, match="out of memory") as caught:
            mine.wait(task)
    assert caught.value.span.text.startswith("way = gen")
    assert caught.value.path == ("ways[0]",)
    assert mine.wait(mine.start("say", {"word": "fox"})).result == alone("say", "fox")
    engine.check()


# Many at once ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_threads_that_start_wait_and_cancel_at_random_end_as_alone(seed: int) -> None:
    engine = tiny_engine(answers_at_once=6)
    loop = EngineLoop(LocalBackend(engine))
    expected = {(name, word): alone(name, word) for name in NAMES for word in ("fox", "dog")}

    def work(number: int) -> int:
        draw = random.Random(seed * 100 + number)
        mine = interpreter(loop)
        cancelled = 0
        keys = [draw.choice(list(expected)) for _ in range(5)]
        tasks = [mine.start(name, {"word": word}) for name, word in keys]
        doomed = draw.sample(tasks, 2)
        for task in doomed[: draw.randint(0, 2)]:
            mine.cancel(task)
        for key, task in draw.sample(list(zip(keys, tasks, strict=True)), 5):
            try:
                assert to_json(mine.wait(task).result) == expected[key]
            except RunCancelled:
                assert task in doomed
                cancelled += 1
        return cancelled

    with ThreadPoolExecutor(5) as threads:
        cancelled = [future.result(PATIENCE) for future in [threads.submit(work, number) for number in range(5)]]
    assert sum(cancelled) < 25
    loop.wait(loop.post(lambda: None))
    engine.check()
