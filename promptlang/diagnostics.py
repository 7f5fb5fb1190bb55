"""What is wrong with a program, where, and what would put it right."""

import json
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import TYPE_CHECKING

from promptlang.source import Span

if TYPE_CHECKING:
    from rich.console import Console

TAB_WIDTH = 4


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True)
class Diagnostic:
    """One finding.

    Attributes:
        code: stable, `PL000` to `PL599`; `explain` has its page.
        message: what is wrong, in one sentence.
        span: where.
        severity: errors keep a program from running.
        fix: what would put it right, where that is known.
        notes: further sentences, each with a place or None.
    """

    code: str
    message: str
    span: Span
    severity: Severity = Severity.ERROR
    fix: str | None = None
    notes: tuple[tuple[str, Span | None], ...] = ()

    @property
    def is_error(self) -> bool:
        return self.severity is Severity.ERROR
