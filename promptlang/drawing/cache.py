"""The radix tree of cached prefixes in DOT."""

from collections.abc import Sequence
from itertools import count

from promptlang.drawing.boxes import FAINT, FONT, INK
from promptlang.runtime.cache.view import CachedEdge, CacheView


def dot(view: CacheView) -> str:
    """What is cached, from left to right; what is locked or held has a strong border."""
    lines = [
        "digraph cache {",
        f'  graph [rankdir=LR, fontname="{FONT}", fontsize=11, nodesep=0.12, ranksep=0.3, pad=0.3];',
        f'  node [shape=box, style=rounded, fontname="{FONT}", fontsize=10, fontcolor="{INK}", color="{INK}"];',
        f'  edge [color="{INK}", arrowhead=none];',
        f'  all [label="{view.slots - view.free:,} of {view.slots:,} tokens in use"];',
    ]
    numbers = count()
    waiting: list[tuple[str, Sequence[CachedEdge]]] = [("all", view.roots)]
    while waiting:
        parent, edges = waiting.pop()
        for edge in edges:
            name = f"n{next(numbers)}"
            width = 2 if edge.locks or edge.holders else 1
            fill = f', style="rounded,filled", fillcolor="{FAINT}"' if edge.is_shared else ""
            lines.append(f'  {name} [label="{_escaped(edge.label)}", penwidth={width}{fill}];')
            lines.append(f"  {parent} -> {name};")
            waiting.append((name, edge.children))
    return "\n".join([*lines, "}"]) + "\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
