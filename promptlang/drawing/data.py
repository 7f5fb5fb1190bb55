"""A program's graph as JSON data; `docs/graph.md` describes it."""

from collections.abc import Iterator, Sequence
from typing import Any

from promptlang.drawing.picture import Picture, Step, kind_name

FORMAT = "promptlang-graph"
VERSION = 1
"""Raised when a reader of the old form would misread the new one."""


def document(pictures: Sequence[Picture]) -> dict[str, Any]:
    """All programs as JSON data."""
    return {"format": FORMAT, "version": VERSION, "programs": [_program(picture) for picture in pictures]}


def _program(picture: Picture) -> dict[str, Any]:
    graph = picture.graph
    return {
        "name": graph.name,
        "parameters": [parameter.name for parameter in graph.parameters],
        "first_tokens": picture.first_tokens,
        "nodes": list(_nodes(picture.steps, None, "body")),
        "edges": [
            *_chain(picture.steps, None),
            *({"kind": "data", "from": flow.source, "to": flow.target, "name": flow.name} for flow in picture.flows),
        ],
        "pruned": [
            {
                "id": finding.node.id,
                "kind": kind_name(finding.node),
                "line": finding.node.span.position.line,
                "parent": finding.around,
                "after": finding.after,
                "pass": finding.name,
                "why": finding.what,
            }
            for finding in picture.pruned
        ],
    }


def _nodes(steps: Sequence[Step], parent: int | None, group: str) -> Iterator[dict[str, Any]]:
    for step in steps:
        node = step.node
        line, column = node.span.position
        yield {
            "id": node.id,
            "kind": step.kind,
            "label": step.label,
            "line": line,
            "column": column,
            "parent": parent,
            "group": group,
            "reads": sorted(node.reads),
            "writes": list(node.writes),
            "shared": step.is_shared,
            "tokens": step.tokens,
            "notes": list(step.notes),
        }
        for inner in step.groups:
            yield from _nodes(inner.steps, node.id, inner.name)


def _chain(steps: Sequence[Step], before: int | None) -> Iterator[dict[str, Any]]:
    """Edges along the prompt: from each step to the next, and into what is inside."""
    for step in steps:
        if before is not None:
            yield {"kind": "prompt", "from": before, "to": step.node.id}
        before = step.node.id
        for group in step.groups:
            yield from _chain(group.steps, before)
