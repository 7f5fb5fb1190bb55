"""What goes wrong for users of the Python door, and how a branch is told that it has to end."""

from promptlang.diagnostics.rendering import excerpt
from promptlang.interpreter import run
from promptlang.session.program_file import ChoiceError as ChoiceError
from promptlang.session.program_file import ProgramError as ProgramError
from promptlang.session.settings import OpeningError as EngineError
from promptlang.syntax.loader import LoadError as LoadError
from promptlang.values.conversion import ArgumentsError as ArgumentsError


class RunError(Exception):
    """A program that failed as it ran.

    Args:
        message: what happened, in one sentence.
        path: the branch it happened in, outermost first (`drafts[2]`).
        place: where, with an excerpt, in a program of a file.
    """

    def __init__(self, message: str, path: tuple[str, ...] = (), place: str = "") -> None:
        super().__init__(message, path, place)
        self.message = message
        self.path = path
        self.place = place

    def __str__(self) -> str:
        said = f"{'.'.join(self.path)}: {self.message}" if self.path else self.message
        return f"{said}\n{self.place}" if self.place else said

    @classmethod
    def of(cls, error: run.RunError) -> "RunError":
        """The interpreter's fault, as users see it."""
        place = "\n".join([str(error.span), *excerpt(error.span)]) if error.span.source.text else ""
        return cls(error.message, error.path, place)


class UsageError(Exception):
    """A statement that can't stand where it does; `str()` says what would put it right."""


class Timeout(TimeoutError):
    """A run that took longer than it was given; what it had begun is cancelled."""


class Cancelled(BaseException):
    """Thrown into a branch whose run ends: it was cancelled, took too long, or a sibling failed. `finally` runs."""


class Pruned(BaseException):
    """Thrown into a branch that a `keep` does not keep. `finally` runs; the fork goes on with the others."""


class AnnotationError(TypeError):
    """An annotation that is no type of an answer; `str()` says which part of it, and what to write instead."""


class MarkError(ValueError):
    """A mark for `Annotated` that says nothing sensible; `str()` says what to change."""


class OptionsError(ValueError):
    """Options that nothing can be selected from; `str()` says what to change."""


__all__ = [
    "AnnotationError",
    "ArgumentsError",
    "Cancelled",
    "ChoiceError",
    "EngineError",
    "LoadError",
    "MarkError",
    "OptionsError",
    "ProgramError",
    "Pruned",
    "RunError",
    "Timeout",
    "UsageError",
]
