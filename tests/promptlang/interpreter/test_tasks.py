"""Coroutines run as far as they can, in one order, and end cleanly."""

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from promptlang.interpreter.tasks import Future, Interrupted, Loop, TaskCancelled

T = TypeVar("T")


def run(loop: Loop, coroutine: Coroutine[Any, None, T], step: Callable[[], bool] = lambda: False) -> T:
    task = loop.spawn(coroutine)
    loop.run_until(task, step)
    return task.value()


def test_every_task_runs_before_the_world_moves() -> None:
    loop, log = Loop(), []
    gate: Future[int] = Future()

    async def waiter(name: str) -> int:
        log.append(name)
        value = await gate
        log.append(f"{name} done")
        return value

    async def main() -> list[int]:
        tasks = [loop.spawn(waiter(name)) for name in "abc"]
        return [await task for task in tasks]

    def step() -> bool:
        log.append("step")
        gate.resolve(7)
        return True

    assert run(loop, main(), step) == [7, 7, 7]
    assert log == ["a", "b", "c", "step", "a done", "b done", "c done"]


def test_an_error_reaches_who_waits() -> None:
    loop = Loop()

    async def fails() -> None:
        raise ValueError("no")

    async def main() -> None:
        await loop.spawn(fails())

    with pytest.raises(ValueError, match="no"):
        run(loop, main())


def test_cancelling_runs_the_finally_blocks_at_once() -> None:
    loop, log = Loop(), []

    async def worker() -> None:
        try:
            await Future()
        finally:
            log.append("released")

    task = loop.spawn(worker())
    loop.run_ready()
    task.cancel()
    assert log == ["released"]
    assert task.is_done
    assert isinstance(task.error, TaskCancelled)


def test_a_task_cancelled_before_it_began_never_runs() -> None:
    loop, log = Loop(), []

    async def worker() -> None:
        log.append("ran")

    task = loop.spawn(worker())
    task.cancel()
    loop.run_ready()
    assert log == []
    assert task.is_done


def test_a_wait_on_nothing_is_an_error_not_a_hang() -> None:
    loop = Loop()

    async def main() -> None:
        await Future()

    with pytest.raises(RuntimeError, match="every branch waits"):
        run(loop, main())


def test_thousands_of_tasks_that_are_done_at_once_need_no_stack() -> None:
    loop = Loop()

    async def leaf(index: int) -> int:
        return index

    async def main() -> int:
        return sum([await loop.spawn(leaf(index)) for index in range(5000)])

    assert run(loop, main()) == sum(range(5000))


def test_an_interrupt_ends_the_task_it_meets_and_leaves_the_others() -> None:
    loop = Loop()

    async def interrupted() -> None:
        raise KeyboardInterrupt

    async def other() -> int:
        return 7

    async def waits() -> None:
        await doomed

    first, doomed, last, waiting = (
        loop.spawn(one)
        for one in (other(), interrupted(), other(), waits())  # type: ignore[arg-type]
    )
    with pytest.raises(KeyboardInterrupt):
        loop.run_ready()
    loop.run_ready()
    assert (first.value(), last.value()) == (7, 7)
    assert isinstance(doomed.error, Interrupted)
    assert waiting.error is doomed.error


def test_all_who_wait_are_told_whatever_one_of_them_raises() -> None:
    future: Future[int] = Future()
    told: list[int] = []
    future.when_done(lambda: told.append(1))
    future.when_done(lambda: 1 // 0)  # type: ignore[arg-type, return-value]
    future.when_done(lambda: told.append(2))
    with pytest.raises(ZeroDivisionError):
        future.resolve(7)
    assert told == [1, 2]


def test_a_value_that_comes_while_another_thread_begins_to_wait_wakes_it() -> None:
    future: Future[int] = Future()
    told: list[int] = []

    class Late(deque[Callable[[], None]]):
        """Lets the value come right before the list of those who wait grows."""

        def append(self, wake: Callable[[], None]) -> None:
            future.resolve(7)
            super().append(wake)

    future._waiting = Late()
    future.when_done(lambda: told.append(1))
    assert told == [1]
