"""A program's graph in DOT, for graphviz to draw.

Read from the top down: what runs after what. A turn is a box, an answer of the model a row in it.
"""

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from shutil import which

from promptlang.compiler.graph import BeamNode, ForkNode
from promptlang.drawing import boxes
from promptlang.drawing.boxes import ASKS, DATA, FAINT, FONT, FORK, INK, PRUNES, ROWS, shown
from promptlang.drawing.picture import Flow, Group, Picture, Step, near_flows, one_line, shared_tokens
from promptlang.drawing.tokens import counted
from promptlang.drawing.tree import short
from promptlang.syntax.ast import Expression, Literal

MOST_EDGES = 4
"""Branches drawn as arrows of their own."""


class GraphvizMissingError(Exception):
    """`dot` is not installed; `str()` says how to get it."""


def svg(pictures: Sequence[Picture]) -> str:
    """The programs as an SVG image.

    Raises:
        GraphvizMissingError: graphviz's `dot` is not there to draw it.
    """
    return drawn(dot(pictures))


def drawn(text: str) -> str:
    """A text in DOT as an SVG image.

    Raises:
        GraphvizMissingError: graphviz's `dot` is not there to draw it.
    """
    if which("dot") is None:
        raise GraphvizMissingError(
            "an SVG is drawn by graphviz, which is not installed; install it (apt-get install graphviz, "
            "brew install graphviz, or graphviz.org/download), or write a .dot file instead"
        )
    return subprocess.run(["dot", "-Tsvg"], input=text, capture_output=True, text=True, check=True).stdout


def dot(pictures: Sequence[Picture]) -> str:
    """The programs in DOT."""
    lines = [
        "digraph promptlang {",
        f'  graph [rankdir=TB, fontname="{FONT}", fontsize=11, nodesep=0.4, ranksep=0.32, pad=0.3, labeljust=l];',
        f'  node [shape=plain, fontname="{FONT}", fontsize=11, fontcolor="{INK}"];',
        f'  edge [fontname="{FONT}", fontsize=9, color="{INK}", arrowsize=0.7];',
    ]
    for index, picture in enumerate(pictures):
        lines += _Program(picture, f"p{index}").lines()
    return "\n".join([*lines, *boxes.legend(pictures), "}"]) + "\n"


@dataclass(frozen=True)
class _Tail:
    """Where the next step is reached from."""

    node: str
    attributes: str = ""


@dataclass
class _Program:
    """One program being written.

    Attributes:
        places: where each node of the graph is drawn.
        shared: tokens that the branches of a fork or beam share, by its id.
        results: where what a fork makes is drawn, by its id and its name.
        breaks: the `break`s of the loop that is being drawn.
        edges: kept apart, for an edge written in a frame would draw both its ends into it.
    """

    picture: Picture
    prefix: str
    out: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    places: dict[int, str] = field(default_factory=dict)
    shared: dict[int, int] = field(init=False)
    results: dict[tuple[int, str], str] = field(default_factory=dict)
    breaks: list[_Tail] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        self.shared = shared_tokens(self.picture.steps)

    def lines(self) -> list[str]:
        start = self._start()
        self._steps(self.picture.steps, [_Tail(start)])
        self._flows(start)
        self._pruned(start)
        return [f"  subgraph cluster_{self.prefix} {{ style=invis;", *self.out, "}", *self.edges]

    # Pieces ------------------------------------------------------------------------------------------

    def _name(self) -> str:
        self.count += 1
        return f"{self.prefix}_{self.count}"

    def _write(self, rows: Sequence[str], fill: str, attributes: str = "", style: str = "rounded") -> str:
        """A box; returns its name."""
        name = self._name()
        table = f'<table border="1" cellborder="0" cellspacing="0" cellpadding="4" color="{FAINT}" bgcolor="{fill}"'
        self.out.append(f'{name} [label=<{table} style="{style}">{"".join(rows)}</table>>{attributes}];')
        return name

    def _edge(self, source: str, target: str, attributes: str = "") -> None:
        self.edges.append(f"{source} -> {target} [{attributes}];")

    def _join(self, tails: Sequence[_Tail], target: str) -> None:
        for tail in tails:
            self._edge(tail.node, target, tail.attributes)

    def _start(self) -> str:
        graph = self.picture.graph
        parameters = ", ".join(parameter.name for parameter in graph.parameters)
        rows = [boxes.row(f"<b>{shown(graph.name)}</b>({shown(parameters)})")]
        if self.picture.first_tokens:
            rows.append(
                boxes.row(boxes.small(f"every run begins with the same {counted(self.picture.first_tokens)} of text"))
            )
        return self._write(rows, "white")

    # Steps -------------------------------------------------------------------------------------------

    def _steps(self, steps: Sequence[Step], tails: list[_Tail]) -> list[_Tail]:
        """Draw steps one under the other; returns from where it goes on."""
        for step in steps:
            tails = self._step(step, tails)
        return tails

    def _step(self, step: Step, tails: list[_Tail]) -> list[_Tail]:
        match step.kind:
            case "fork":
                return self._fork(step, tails)
            case "beam":
                return self._beam(step, tails)
            case "require" if step.groups[0].steps:
                return self._require(step, tails)
            case "if":
                return self._if(step, tails)
            case "for" | "while":
                return self._loop(step, tails)
            case "turn" if not all(inner.kind in ROWS for inner in step.groups[0].steps):
                return self._enclosed(step, tails, f"{step.label}:")
            case "use":
                return self._enclosed(step, tails, step.label)
        return self._box(step, tails)

    def _box(self, step: Step, tails: list[_Tail]) -> list[_Tail]:
        inner = step.groups[0].steps if step.kind == "turn" else (step,)
        rows = [boxes.head(step, inner)] if step.kind == "turn" or step.tokens else []
        rows += [row for one in inner for row in boxes.content(one)]
        name = self._write(rows, boxes.fill(step))
        for one in (step, *inner):
            self.places[one.node.id] = name if one is step and step.kind == "turn" else f"{name}:n{one.node.id}"
        self._join(tails, name)
        if step.label == "break":
            self.breaks.append(_Tail(name))
        return [] if step.kind in ("return", "jump") else [_Tail(name)]

    def _enclosed(self, step: Step, tails: list[_Tail], label: str) -> list[_Tail]:
        """Steps in a frame with a label."""
        self._open(label)
        start = self.places[step.node.id] = self._point()
        self._join(tails, start)
        tails = self._steps(step.groups[0].steps, [_Tail(start)])
        self.out.append("}")
        return tails

    def _open(self, label: str, color: str = FAINT, style: str = "rounded,dashed") -> None:
        name = self._name()
        text = f'<font color="{color}">{shown(short(label))}</font>'
        self.out.append(f'subgraph cluster_{name} {{ label=<{text}>; style="{style}"; color="{color}"; margin=12;')

    def _point(self) -> str:
        name = self._name()
        self.out.append(f'{name} [shape=point, width=0.06, color="{FAINT}", label=""];')
        return name

    def _loop(self, step: Step, tails: list[_Tail]) -> list[_Tail]:
        outer, self.breaks = self.breaks, []
        ends = self._enclosed(step, tails, f"↻ {step.label}")
        for tail in ends:
            self._edge(tail.node, self.places[step.node.id], f'style=dashed, color="{FAINT}", constraint=false')
        ends, self.breaks = ends + self.breaks, outer
        return ends

    def _if(self, step: Step, tails: list[_Tail]) -> list[_Tail]:
        start = self._point()
        self.places[step.node.id] = start
        self._join(tails, start)
        ends: list[_Tail] = []
        for group in step.groups:
            self._open(group.name)
            ends += self._steps(group.steps, [_Tail(start)])
            self.out.append("}")
        if step.groups[-1].name != "else":
            ends.append(_Tail(start, f'label="else", fontcolor="{FAINT}"'))
        return ends

    def _require(self, step: Step, tails: list[_Tail]) -> list[_Tail]:
        """What is done again, in a frame that ends in what is asked of it."""
        self._open("again, until what is required is met")
        start = self._point()
        self._join(tails, start)
        ends = self._steps(step.groups[0].steps, [_Tail(start)])
        asked = self._write([boxes.row(f"<b>{boxes.lines(step.label)}</b>", port=step.node.id)], ASKS)
        self.places[step.node.id] = f"{asked}:n{step.node.id}"
        self._join(ends, asked)
        self.out.append("}")
        self._edge(
            asked, start, f'style=dashed, color="{FAINT}", constraint=false, label="not met", fontcolor="{FAINT}"'
        )
        return [_Tail(asked, f'label="met", fontcolor="{FAINT}"')]

    def _beam(self, step: Step, tails: list[_Tail]) -> list[_Tail]:
        node = step.node
        assert isinstance(node, BeamNode)
        name = self._dark_box(step, self._shared_notes(step))
        self._join(tails, name)
        ways = _count(node.branch)
        label = f"each of the {ways} branches" if ways else "each branch"
        self._open(f"{label} of a path, in every round", FORK, "rounded,bold")
        starts = [_Tail(name, f'color="{FORK}"')] * min(ways or 3, MOST_EDGES)
        ends = self._steps(step.groups[0].steps, starts)
        ranked = [
            boxes.row(f"<b>by {shown(one_line(node.by.span.text))}</b>"),
            boxes.row(
                boxes.small(f"the best {one_line(node.width.span.text)} paths of all go on, the others are pruned")
            ),
        ]
        last = self._write(ranked, PRUNES)
        self._join(ends, last)
        self.out.append("}")
        self._edge(
            last, name, f'style=dashed, color="{FORK}", constraint=false, label="next round", fontcolor="{FORK}"'
        )
        join = self._result(node, "the paths that are left, the best first; the prompt is again as before")
        self._edge(last, join, f'color="{FORK}"')
        return [_Tail(join)]

    def _dark_box(self, step: Step, notes: Sequence[str]) -> str:
        """Where branches begin."""
        rows = [boxes.row(f'<font color="white"><b>{shown(step.label)}</b></font>', port=step.node.id)]
        rows += [boxes.row(f'<font color="white" point-size="9">{shown(text)}</font>') for text in notes]
        name = self._write(rows, FORK)
        self.places[step.node.id] = f"{name}:n{step.node.id}"
        return name

    def _result(self, node: ForkNode | BeamNode, note: str) -> str:
        """What branches leave."""
        name = self._write([boxes.row(f"<b>{shown(node.name)}</b>"), boxes.row(boxes.small(note))], "white", "")
        self.results[node.id, node.name] = name
        return name

    def _fork(self, step: Step, tails: list[_Tail]) -> list[_Tail]:
        node = step.node
        assert isinstance(node, ForkNode)
        name = self._dark_box(step, self._fork_notes(step))
        self._join(tails, name)
        head = [group for group in step.groups if group.name == "head"]
        branches = [group for group in step.groups if group.name != "head"]
        starts = [_Tail(name)]
        for group in head:
            self._open("every branch begins with this: it is written once", FORK)
            starts = self._steps(group.steps, starts)
            self.out.append("}")
        ends = [end for group in branches for end in self._branch(node, group, starts)]
        join = self._result(node, "the prompt is again as before the fork")
        for end in ends:
            self._edge(end.node, join, f'color="{FORK}", {end.attributes}')
        return [_Tail(join)]

    def _branch(self, node: ForkNode, group: Group, starts: Sequence[_Tail]) -> list[_Tail]:
        count = _count(node.over)
        arrows = 1 if node.kind == "arms" or node.is_merged else min(count or 3, MOST_EDGES)
        if node.kind == "arms":
            self._open(f"branch {group.name}", FORK)
        elif node.is_merged:
            self._open("one branch, copied", FORK, "rounded,bold")
        else:
            self._open(f"each of the {count} branches" if count else "each branch", FORK, "rounded,bold")
        styled = [_Tail(tail.node, f'color="{FORK}"') for tail in starts for _ in range(arrows)]
        if not group.steps:
            point = self._point()
            self._join(styled, point)
            styled = [_Tail(point)]
        ends = self._steps(group.steps, list(styled))
        self.out.append("}")
        return ends

    def _fork_notes(self, step: Step) -> list[str]:
        node = step.node
        assert isinstance(node, ForkNode)
        notes = self._shared_notes(step)
        if node.is_merged:
            notes.append("all are equal: one runs, the others are copies")
        return notes

    def _shared_notes(self, step: Step) -> list[str]:
        shared = self.shared[step.node.id]
        return [f"branches share what is blue: {counted(shared)} of text, data and answers"] if shared else []

    # Data and what is gone ---------------------------------------------------------------------------

    def _flows(self, start: str) -> None:
        for flow in near_flows(self.picture):
            source = self._source(flow, start)
            target = self.places[flow.target]
            if source.split(":")[0] == target.split(":")[0]:
                continue
            tip = f'tooltip="{flow.name}"'
            self._edge(
                f"{source}:e", f"{target}:e", f'style=dotted, color="{DATA}", arrowsize=0.5, constraint=false, {tip}'
            )

    def _source(self, flow: Flow, start: str) -> str:
        if flow.source is None:
            return start
        return self.results.get((flow.source, flow.name)) or self.places[flow.source]

    def _pruned(self, start: str) -> None:
        for finding in self.picture.pruned:
            name = self._write(boxes.gone(finding), "white", f', fontcolor="{FAINT}"', "rounded,dashed")
            self.places[finding.node.id] = name
            anchors = [self.places[place] for place in (finding.after, finding.around) if place in self.places]
            anchor = (anchors or [start])[0].split(":")[0]
            self._edge(anchor, name, f'style=dashed, color="{FAINT}", arrowhead=none')


def _count(number: Expression | None) -> int | None:
    """A number, where the program says it itself."""
    return number.value if isinstance(number, Literal) and isinstance(number.value, int) else None
