"""Coroutines run as far as they can, in one order, and end cleanly."""

import pytest

from promptlang.interpreter.tasks import Future, Loop, TaskCancelled


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

    assert loop.run(loop.spawn(main()), step) == [7, 7, 7]
    assert log == ["a", "b", "c", "step", "a done", "b done", "c done"]


def test_an_error_reaches_who_waits() -> None:
    loop = Loop()

    async def fails() -> None:
        raise ValueError("no")

    async def main() -> None:
        await loop.spawn(fails())

    with pytest.raises(ValueError, match="no"):
        loop.run(loop.spawn(main()), lambda: False)


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
        loop.run(loop.spawn(main()), lambda: False)


def test_thousands_of_tasks_that_are_done_at_once_need_no_stack() -> None:
    loop = Loop()

    async def leaf(index: int) -> int:
        return index

    async def main() -> int:
        return sum([await loop.spawn(leaf(index)) for index in range(5000)])

    assert loop.run(loop.spawn(main()), lambda: False) == sum(range(5000))
