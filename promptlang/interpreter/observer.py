"""Who watches a run."""

from typing import Protocol


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
