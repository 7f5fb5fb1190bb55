"""Parts of a JSON Schema that are asked of a value again by themselves: no engine comes to an end of them."""

from collections.abc import Iterator
from typing import Any

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.json_schema.drafts import REFERENCES, pointed, written_reference

OF_THE_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas")
"""Keywords whose schemas are asked of the value itself, and not of a part of it."""


def check_circles(root: dict[str, Any]) -> None:
    """Check that every way round in a schema goes into a property or an item.

    Args:
        root: one whose references lead to itself or its definitions (see `in_newest_draft`).

    Raises:
        ConstraintError: one doesn't; `str()` names the reference that closes it.
    """
    done: set[int] = set()
    for start in _schemas(root):
        _follow(root, start, done)


def _follow(root: dict[str, Any], start: dict[str, Any], done: set[int]) -> None:
    """Follow all ways from a schema that stay at the same value; in a loop, for they may be long."""
    under_way = {id(start)}
    ways = [(start, _asked(root, start))]
    while ways:
        part, nexts = ways[-1]
        keyword, following = next(nexts, ("", None))
        if following is None:
            ways.pop()
            under_way.discard(id(part))
            done.add(id(part))
        elif id(following) in under_way:
            raise ConstraintError(f"{keyword} leads back to where it stands: go into a property or an item on the way")
        elif id(following) not in done:
            under_way.add(id(following))
            ways.append((following, _asked(root, following)))


def _asked(root: dict[str, Any], part: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The schemas that a schema asks of the same value, each with its keyword and where it leads."""
    for keyword in REFERENCES:
        reference = part.get(keyword)
        if isinstance(reference, str):
            target = pointed(root, reference) if reference.startswith("#/") else root if reference == "#" else None
            if isinstance(target, dict):
                yield f'the reference "{written_reference(reference)}"', target
    for keyword in OF_THE_SAME_VALUE:
        value = part.get(keyword)
        if keyword == "dependentSchemas" and isinstance(value, dict):
            value = list(value.values())
        for following in value if isinstance(value, list) else [value]:
            if isinstance(following, dict):
                yield f'"{keyword}"', following


def _schemas(root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every dict in a schema: what stands where no schema should is asked by none, and so is in no circle."""
    waiting: list[Any] = [root]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            yield part
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
