"""Where in a JSON Schema something is wrong: the innermost part that is refused by itself for the same reason."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from promptlang.grammar.json_schema.drafts import DEFINITIONS, IN_DICT, IN_LIST, IN_ONE, pointed, steps_of

MOST_TRIED = 500_000
"""Characters of the parts that are tried by themselves; where more would be needed, the place is less exact."""

NAME = re.compile(r"[A-Za-z_$][\w$-]*")
"""A key that stands in a path without quotation marks."""


def refused_place(text: str, reason: str, refuse: Callable[[str], str]) -> str:
    """The place of what is wrong in a schema, as a JSON path (`$.properties.a.items`).

    Args:
        text: a schema that is refused; may be no JSON.
        reason: why.
        refuse: why a schema is refused; empty where it isn't.
    """
    try:
        root = json.loads(text)
    except (ValueError, RecursionError):
        return "$"
    return _Search(root, reason, refuse).place() if isinstance(root, dict) else "$"


@dataclass
class _Search:
    root: dict[str, Any]
    reason: str
    refuse: Callable[[str], str]
    tried: int = 0

    def place(self) -> str:
        beside = {keyword: self.root[keyword] for keyword in ("$schema", *DEFINITIONS) if keyword in self.root}
        if self._is_refused(beside):
            return "$"  # what is beside the parts is wrong whether or not it is used: none of them can be told
        place, part = "$", self.root
        met = set[str]()
        while inner := self._refused_part(place, part, beside):
            place, part = inner
            if place in met:
                break
            met.add(place)
        return place

    def _refused_part(self, place: str, part: Any, beside: dict[str, Any]) -> tuple[str, Any] | None:
        for inner_place, inner in [*_parts(place, part), *self._target(part)] if isinstance(part, dict) else []:
            if not isinstance(inner, bool) and self._is_refused(
                {**beside, **inner} if isinstance(inner, dict) else inner
            ):
                return inner_place, inner
        return None

    def _target(self, part: dict[str, Any]) -> Iterator[tuple[str, Any]]:
        """Where a reference within the schema leads."""
        reference = part.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/"):
            steps = steps_of(reference)
            yield (
                "$" + "".join(f"[{step}]" if step.isdigit() else _step(step) for step in steps),
                pointed(self.root, reference),
            )

    def _is_refused(self, part: Any) -> bool:
        text = json.dumps(part)
        self.tried += len(text)
        return self.tried <= MOST_TRIED and self.refuse(text) == self.reason


def _parts(place: str, schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas right inside one, each with its place; not the definitions, to which references lead."""
    for keyword, value in schema.items():
        if keyword in IN_LIST and isinstance(value, list):
            yield from ((f"{place}.{keyword}[{index}]", part) for index, part in enumerate(value))
        elif keyword in IN_DICT and keyword not in DEFINITIONS and isinstance(value, dict):
            yield from ((f"{place}.{keyword}{_step(name)}", part) for name, part in value.items())
        elif keyword in IN_ONE:
            yield f"{place}.{keyword}", value


def _step(name: str) -> str:
    return f".{name}" if NAME.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"
