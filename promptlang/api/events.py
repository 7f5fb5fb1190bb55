"""What happens in a run, as it happens: one frozen object an event.

`path` names the branch, outermost first; () is the program itself.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from promptlang.api.partial import Growing
from promptlang.grammar.shapes import ContextFree, Shape, Str
from promptlang.runtime.requests import Finish
from promptlang.values.values import Value

Path: TypeAlias = tuple[str, ...]


@dataclass(frozen=True)
class Event:
    """Something happened in a branch.

    Attributes:
        path: of the branch.
    """

    path: Path


@dataclass(frozen=True)
class Text(Event):
    """The program extended the prompt; in a turn of `role`, or outside of turns."""

    role: str | None
    text: str


@dataclass(frozen=True)
class Answer(Event):
    """A piece of what the model answers, safe to show.

    Attributes:
        role: of the turn that it stands in; None outside of turns.
        text: the piece.
        partial: what there is of an answer of a type: a `Partial`, a `PartialList`, or a value that is whole. It is a
            view that grows with the answer; `partial.plain` makes data of it that stays. None for free text.
    """

    role: str | None
    text: str
    partial: Any = None


@dataclass(frozen=True)
class Answered(Event):
    """An answer is over.

    Attributes:
        finish: why it ended: `stop`, `length`, `end` or `done`.
    """

    finish: Finish


@dataclass(frozen=True)
class Turn(Event):
    """A turn begins."""

    role: str


@dataclass(frozen=True)
class Variable(Event):
    """A variable of a file's program has a value."""

    name: str
    value: Any


@dataclass(frozen=True)
class Opened(Event):
    """A branch begins, or a program that was called."""


@dataclass(frozen=True)
class Ended(Event):
    """A branch has come to its end, or a program that was called."""


@dataclass(frozen=True)
class Pruned(Event):
    """A branch is not kept, or was cancelled."""


@dataclass(frozen=True)
class Adopted(Event):
    """The prompt goes on from the branch with this number."""

    index: int


@dataclass(frozen=True)
class Retried(Event):
    """What was required was not met: the prompt went back, and what was said since is said anew."""

    why: str


@dataclass(frozen=True)
class Log(Event):
    """The program wrote to its trace."""

    text: str


@dataclass(frozen=True)
class Done(Event):
    """The program has returned.

    Attributes:
        result: what it returned.
    """

    result: Any


class Recorder:
    """An observer that makes events of what it sees.

    Args:
        tell: takes each event; called from the loop's thread, which waits for it.
        read: makes a value of the language one of Python; None for a program without variables.
    """

    def __init__(self, tell: Callable[[Event], None], read: Callable[[Value], Any] | None) -> None:
        self._tell = tell
        self._read = read
        self._roles: dict[Path, str] = {}
        self._growing: dict[Path, Growing] = {}

    def turn(self, path: Path, role: str) -> None:
        self._roles[path] = role
        self._tell(Turn(path, role))

    def turn_ended(self, path: Path) -> None:
        self._roles.pop(path, None)

    def text(self, path: Path, text: str) -> None:
        self._tell(Text(path, self._role(path), text))

    def asked(self, path: Path, shape: Shape | None) -> None:
        if shape is not None and not isinstance(shape, Str | ContextFree):
            self._growing[path] = Growing(shape)

    def answer(self, path: Path, text: str) -> None:
        growing = self._growing.get(path)
        if growing is not None:
            growing.feed(text)
        self._tell(Answer(path, self._role(path), text, None if growing is None else growing.value))

    def answered(self, path: Path, finish: Finish) -> None:
        self._growing.pop(path, None)
        self._tell(Answered(path, finish))

    def bound(self, path: Path, name: str, value: Value) -> None:
        if self._read is not None:
            self._tell(Variable(path, name, self._read(value)))

    def opened(self, path: Path) -> None:
        self._tell(Opened(path))

    def ended(self, path: Path) -> None:
        self._tell(Ended(path))

    def pruned(self, path: Path) -> None:
        self._tell(Pruned(path))

    def adopted(self, path: Path, index: int) -> None:
        self._tell(Adopted(path, index))

    def retried(self, path: Path, why: str) -> None:
        self._tell(Retried(path, why))

    def log(self, path: Path, text: str) -> None:
        self._tell(Log(path, text))

    def _role(self, path: Path) -> str | None:
        """The role of the turn that a branch is in: its own, or that of the branch it began in."""
        while path not in self._roles:
            if not path or "()" in path[-1]:  # a program that was called has a prompt of its own
                return None
            path = path[:-1]
        return self._roles[path]
