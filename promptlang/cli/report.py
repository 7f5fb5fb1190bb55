"""What a run reports: the JSON object, and the line of numbers."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from promptlang.diagnostics.source import Span
from promptlang.interpreter.run import Outcome
from promptlang.runtime.usage import Usage
from promptlang.values.conversion import to_json


@dataclass(frozen=True)
class Fault:
    """What went wrong, where; lines and columns count from 1.

    Attributes:
        path: the branch it happened in, outermost first.
    """

    message: str
    file: str
    line: int
    column: int
    path: tuple[str, ...] = ()

    @classmethod
    def at(cls, span: Span, message: str, path: tuple[str, ...]) -> "Fault":
        return cls(message, span.source.name, *span.position, path)

    def __str__(self) -> str:
        branch = f" in {'.'.join(self.path)}" if self.path else ""
        return f"{self.file}:{self.line}:{self.column}: error{branch}: {self.message}"


@dataclass(frozen=True)
class Heading:
    """What the reports of a command have in common.

    Attributes:
        program: which ran.
        model: as `--model` names it.
        seed: of its random numbers.
        template_options: JSON data by name; a report without any does not mention them.
    """

    program: str
    model: str
    seed: int
    template_options: Mapping[str, Any] = field(default_factory=dict)

    def report(self, end: Outcome | Fault, usage: Usage, weights: str) -> dict[str, Any]:
        """The JSON object of one run.

        Args:
            end: how it ended.
            usage: its numbers.
            weights: what the model's are kept in.
        """
        if isinstance(end, Fault):
            ending = {"error": asdict(end)}
        else:
            ending = {"result": to_json(end.result), "variables": to_json(end.variables)}
        return {
            "program": self.program,
            **ending,
            "usage": {**usage.as_dict(), "weights": weights},
            "model": self.model,
            "seed": self.seed,
            **({"template_options": dict(self.template_options)} if self.template_options else {}),
        }


def line_of(data: Any) -> str:
    """JSON data on one line."""
    return json.dumps(_finite(data), ensure_ascii=False, allow_nan=False)


def pretty(value: Any) -> str:
    """A program's result as JSON for people."""
    return json.dumps(_finite(to_json(value)), ensure_ascii=False, allow_nan=False, indent=2)


def _finite(data: Any) -> Any:
    """JSON has no infinities: the log-probability of the impossible becomes null."""
    if isinstance(data, float) and not math.isfinite(data):
        return None
    if isinstance(data, list):
        return [_finite(item) for item in data]
    if isinstance(data, dict):
        return {key: _finite(item) for key, item in data.items()}
    return data


def numbers(usage: Usage, seconds: float) -> str:
    """The line that ends a run.

    Args:
        usage: its counters.
        seconds: from the beginning of the process, loading included.
    """
    warnings = [
        f"{count} answer{'' if count == 1 else 's'} {what}"
        for count, what in (
            (usage.cut_answers, "cut at max_tokens"),
            (usage.overruled_answers, "ended by the type where the model went on"),
        )
        if count
    ]
    return " · ".join([*_asked(usage), f"{seconds:.1f} s (load {usage.load_seconds:.1f})", *warnings])


def _asked(usage: Usage) -> list[str]:
    """What was asked of the model and came of it; before its first pass, a run took nothing from the cache."""
    forced = f" and {usage.forced_tokens} forced" if usage.forced_tokens else ""
    written = f"{usage.generated_tokens} generated{forced}"
    if not usage.calls:
        return ["the model was not asked", *([written] if forced else [])]
    asked = f"{usage.requested_tokens} prompt tokens asked for"
    if not usage.forwards:
        return [asked, "no pass was made", *([written] if forced else [])]
    cached = usage.cached_tokens / usage.requested_tokens if usage.requested_tokens else 0.0
    drafted = [f"{usage.accepted_tokens} of {usage.drafted_tokens} guesses held"] if usage.drafted_tokens else []
    return [
        asked,
        f"{usage.computed_tokens} computed ({usage.optimal_tokens} at the least)",
        f"{cached:.0%} from the cache".replace("%", " %"),
        written,
        f"{usage.forwards} passes",
        *drafted,
    ]
