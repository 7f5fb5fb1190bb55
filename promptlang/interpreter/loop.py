"""One loop a backend: it runs all coroutines, steps the models they ask, and takes what host functions return.

Several interpreters, and several threads, share it. It has no thread of its own: of those who wait, one leads and moves
everything, for the others too; they wait until their own task is done, or until the leader has left and one of them
takes over (leader and followers; Schmidt et al., Leader/Followers, PLoP 2000). Or a thread that has nothing else to do
leads for all (`serve`).
"""

from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from threading import Condition, get_ident
from types import MappingProxyType
from typing import Any, TypeVar

from promptlang.interpreter.guests import Guests
from promptlang.interpreter.tasks import Future, Loop, Task, TaskCancelled
from promptlang.interpreter.threads import Threads
from promptlang.runtime.backend import Backend

T = TypeVar("T")


class RunCancelled(Exception):
    """The run was cancelled before its end."""


class EngineLoop:
    """Runs programs on their models, whoever waits for them.

    Args:
        backend: of the model of all programs that name none.
        others: backends by the names that programs give to their models (`Graph.on`).

    Attributes:
        backends: by name; None names the first.
        threads: run host functions, beside the models.
        guests: threads outside that the models wait a moment for.
        is_closed: whether it runs nothing any more.
    """

    def __init__(self, backend: Backend, others: Mapping[str, Backend] = MappingProxyType({})) -> None:
        self.backends: Mapping[str | None, Backend] = dict([(None, backend), *others.items()])
        self.threads = Threads()
        self.guests = Guests(self.threads)
        self.is_closed = False
        self._watching: dict[Callable[[], None], None] = {}
        self._turns = deque(dict.fromkeys(self.backends.values()))
        self._tasks = Loop()
        self._unfinished: dict[Task[Any], None] = {}
        self._posts: deque[Callable[[], None]] = deque()
        self._leader: int | None = None
        self._changed = Condition()

    def spawn(self, coroutine: Coroutine[Any, None, T]) -> Task[T]:
        """Start a coroutine, from any thread; it runs when its turn comes, in the thread of whoever waits."""
        task = self._tasks.spawn(coroutine)
        self._unfinished[task] = None
        task.when_done(lambda: self._ended(task))
        if self.is_closed:
            task.cancel()
        if self._leader not in (None, get_ident()):
            self.threads.wake()
        return task

    def _ended(self, task: Task[Any]) -> None:
        del self._unfinished[task]

    def close(self) -> None:
        """End all that was spawned, from any thread; whatever is spawned later is cancelled at once."""

        def end() -> None:
            self.is_closed = True
            for task in list(self._unfinished):
                task.cancel()

        self.wait(self.post(end))

    def watch(self, look: Callable[[], None]) -> None:
        """Call a function after each pass of a model, until `unwatch`; in the loop."""
        self._watching[look] = None

    def unwatch(self, look: Callable[[], None]) -> None:
        """Call it no more."""
        self._watching.pop(look, None)

    def post(self, work: Callable[[], T]) -> Future[T]:
        """Do something that needs the loop to stand still, from any thread: at once where no other thread moves it,
        else between two moves of the thread that does.

        Args:
            work: done once. What it raises fails the returned future alone.

        Returns:
            What it returns; `wait` gives it.
        """
        done: Future[T] = Future()
        if self._leader == get_ident():
            done.settle(work)
            return done
        self._posts.append(partial(done.settle, work))
        with self._leading(lambda: True) as leads:
            if leads:
                self._take_posts()
            else:
                self.threads.wake()
        return done

    def wait(self, future: Future[T]) -> T:
        """Move everything until a task is done, or let the thread that does go on.

        Raises:
            RunCancelled: the task was cancelled.
            RuntimeError: nothing moves, and the task is not done; or this was called from inside the loop, which then
                could not go on.
        """
        if self._leader == get_ident():
            raise RuntimeError("who is called by the loop (an observer) can't wait for it")
        future.when_done(self._tell_followers)
        while not future.is_done:
            with self._leading(lambda: future.is_done) as leads:
                if leads:
                    self._tasks.run_until(future, self._move)
        if isinstance(future.error, TaskCancelled):
            raise RunCancelled("the run was cancelled") from future.error
        return future.value()

    def serve(self, until: Future[None]) -> None:
        """Move everything in this thread, for whoever waits, and rest where there is nothing to move.

        Args:
            until: the end of it; whoever resolves it calls `threads.wake`.
        """
        with self._leading(lambda: until.is_done) as leads:
            if leads:
                self._tasks.run_until(until, lambda: self._move() or self.threads.rest())

    # Who leads ---------------------------------------------------------------------------------------

    @contextmanager
    def _leading(self, until: Callable[[], bool]) -> Iterator[bool]:
        """Lead as soon as nobody else does; False where `until` came to hold first."""
        me = get_ident()
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._leader is None or until())
                if self._leader is None:
                    self._leader = me
            yield self._leader == me
        finally:
            with self._changed:
                if self._leader == me:
                    self._leader = None
                    self._changed.notify_all()

    def _tell_followers(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # What moves --------------------------------------------------------------------------------------

    def _move(self) -> bool:
        """Move the world outside: do what was posted, take what host functions returned, else let guests go on, else
        run one model once, else wait for a host function.

        Returns:
            Whether there was anything to move.
        """
        return (
            self._take_posts()
            or self.threads.deliver(wait=False)
            or self.guests.wait()
            or self._step()
            or self.threads.deliver(wait=True)
        )

    def _take_posts(self) -> bool:
        any_posts = bool(self._posts)
        while self._posts:
            self._posts[0]()
            self._posts.popleft()  # only now: an interrupt loses none
        return any_posts

    def _step(self) -> bool:
        """One pass of one model, in turn of those that have work."""
        for _ in range(len(self._turns)):
            backend = self._turns[0]
            self._turns.rotate(-1)
            if backend.step():
                for look in list(self._watching):
                    look()
                return True
        return False
