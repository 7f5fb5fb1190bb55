"""A program's graph as a tree of lines."""

from collections.abc import Iterator, Sequence

from promptlang.diagnostics.rendering import visible
from promptlang.drawing.picture import Group, Picture, Step, one_line
from promptlang.drawing.tokens import counted

WIDEST = 72
"""Characters of a label."""


def tree(picture: Picture) -> str:
    """The lines, in order: what runs after what, indented by what it stands in.

    `=` marks what branches share, `x` what passes took out.
    """
    graph = picture.graph
    lines = [f"program {graph.name}({', '.join(parameter.name for parameter in graph.parameters)})"]
    if picture.first_tokens:
        lines[0] += f"  every run begins with the same {counted(picture.first_tokens)} of text"
    lines += [f"{mark} {text}" for mark, text in _steps(picture.steps, "")]
    lines += [
        f"x {finding.node.span.position.line:4}  {short(finding.node.span.text)}  ({finding.name}: {finding.what})"
        for finding in picture.pruned
    ]
    return "\n".join(map(visible, lines)) + "\n"


def _steps(steps: Sequence[Step], indent: str) -> Iterator[tuple[str, str]]:
    for step in steps:
        line = step.node.span.position.line
        tokens = f"  {counted(step.tokens)}" if step.tokens is not None else ""
        notes = "".join(f"  ({note})" for note in step.notes)
        mark = "=" if step.is_shared else " "
        yield mark, f"{line:4}  {indent}{_line_of(step)}{tokens}{notes}"
        for group in step.groups:
            yield from _group(group, indent + "  ")


def _group(group: Group, indent: str) -> Iterator[tuple[str, str]]:
    if group.name in ("body", "branch"):
        yield from _steps(group.steps, indent)
        return
    mark = "=" if group.name == "head" else " "
    yield mark, f"      {indent}{'all begin with' if group.name == 'head' else group.name}:"
    yield from _steps(group.steps, indent + "  ")


def _line_of(step: Step) -> str:
    """A step on one line; its own words where the line alone would not say what it is."""
    if step.kind == "text":
        return f'"{short(step.label)}"'
    if step.kind == "require" and any(group.steps for group in step.groups):
        return f"again until met: {short(step.label)}"
    if step.kind == "start":
        return f"begin {short(step.label)}"
    return f"{step.label}:" if step.kind == "turn" else short(step.label)


def short(text: str) -> str:
    """The beginning of a text, on one line."""
    text = one_line(text)
    return text if len(text) <= WIDEST else text[: WIDEST - 1] + "…"
