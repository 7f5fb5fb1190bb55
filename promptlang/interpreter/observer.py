"""Who watches a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, runtime_checkable

from promptlang.grammar.shapes import Shape
from promptlang.runtime.backend import OnPrompt, PromptText
from promptlang.runtime.requests import Finish, WatcherError, watching
from promptlang.values.values import Value


class Observer(Protocol):
    """Sees a run as it happens. `path` names the branch, outermost first; () is the program itself."""

    def turn(self, path: tuple[str, ...], role: str) -> None: ...

    def text(self, path: tuple[str, ...], text: str) -> None: ...

    def answer(self, path: tuple[str, ...], text: str) -> None: ...

    def ended(self, path: tuple[str, ...]) -> None:
        """A branch, or a program that was called, has come to its end."""

    def pruned(self, path: tuple[str, ...]) -> None:
        """A branch is not kept, or was cancelled."""

    def retried(self, path: tuple[str, ...], why: str) -> None:
        """A `require` was not met: what was said since its checkpoint is withdrawn, and said anew."""

    def log(self, path: tuple[str, ...], text: str) -> None: ...


@runtime_checkable
class PromptObserver(Protocol):
    """An observer that sees each prompt that a model is asked about, too."""

    def prompt(self, row: int, path: tuple[str, ...], prompt: PromptText) -> None: ...


@runtime_checkable
class CloseObserver(Protocol):
    """An observer that sees where turns, branches and answers begin and end, and what variables hold, too."""

    def turn_ended(self, path: tuple[str, ...]) -> None: ...

    def opened(self, path: tuple[str, ...]) -> None:
        """A branch begins, or a program that was called."""

    def asked(self, path: tuple[str, ...], shape: Shape | None) -> None:
        """An answer begins; of no shape where it is free text, or an option."""

    def answered(self, path: tuple[str, ...], finish: Finish) -> None:
        """The answer is over."""

    def bound(self, path: tuple[str, ...], name: str, value: Value) -> None:
        """A variable has a value; that of a call, once it is known."""

    def adopted(self, path: tuple[str, ...], index: int) -> None:
        """The prompt goes on from a branch."""


class SilentObserver:
    """Sees nothing."""

    def turn(self, path: tuple[str, ...], role: str) -> None:
        pass

    def text(self, path: tuple[str, ...], text: str) -> None:
        pass

    def answer(self, path: tuple[str, ...], text: str) -> None:
        pass

    def ended(self, path: tuple[str, ...]) -> None:
        pass

    def pruned(self, path: tuple[str, ...]) -> None:
        pass

    def retried(self, path: tuple[str, ...], why: str) -> None:
        pass

    def log(self, path: tuple[str, ...], text: str) -> None:
        pass


class Watched:
    """Hands everything on to an observer; what that raises is a `WatcherError` here.

    Args:
        observer: who watches.

    Attributes:
        failure: the first one.
    """

    def __init__(self, observer: Observer) -> None:
        self._observer = observer
        self._close = observer if isinstance(observer, CloseObserver) else None
        self.failure: WatcherError | None = None

    @contextmanager
    def _watching(self) -> Iterator[Observer]:
        try:
            with watching():
                yield self._observer
        except WatcherError as error:
            self.failure = self.failure or error
            raise

    def on_prompt(self, row: int, path: tuple[str, ...]) -> OnPrompt | None:
        """Takes the prompt of a branch; None where nobody wants to see it, for it costs time to spell."""
        observer = self._observer
        if not isinstance(observer, PromptObserver):
            return None

        def show(prompt: PromptText) -> None:
            with self._watching():
                observer.prompt(row, path, prompt)

        return show

    def turn(self, path: tuple[str, ...], role: str) -> None:
        with self._watching() as observer:
            observer.turn(path, role)

    def text(self, path: tuple[str, ...], text: str) -> None:
        with self._watching() as observer:
            observer.text(path, text)

    def answer(self, path: tuple[str, ...], text: str) -> None:
        with self._watching() as observer:
            observer.answer(path, text)

    def ended(self, path: tuple[str, ...]) -> None:
        with self._watching() as observer:
            observer.ended(path)

    def pruned(self, path: tuple[str, ...]) -> None:
        with self._watching() as observer:
            observer.pruned(path)

    def retried(self, path: tuple[str, ...], why: str) -> None:
        with self._watching() as observer:
            observer.retried(path, why)

    def log(self, path: tuple[str, ...], text: str) -> None:
        with self._watching() as observer:
            observer.log(path, text)

    def turn_ended(self, path: tuple[str, ...]) -> None:
        if self._close is not None:
            with self._watching():
                self._close.turn_ended(path)

    def opened(self, path: tuple[str, ...]) -> None:
        if self._close is not None:
            with self._watching():
                self._close.opened(path)

    def asked(self, path: tuple[str, ...], shape: Shape | None) -> None:
        if self._close is not None:
            with self._watching():
                self._close.asked(path, shape)

    def answered(self, path: tuple[str, ...], finish: Finish) -> None:
        if self._close is not None:
            with self._watching():
                self._close.answered(path, finish)

    def bound(self, path: tuple[str, ...], name: str, value: Value) -> None:
        if self._close is not None:
            with self._watching():
                self._close.bound(path, name, value)

    def adopted(self, path: tuple[str, ...], index: int) -> None:
        if self._close is not None:
            with self._watching():
                self._close.adopted(path, index)
