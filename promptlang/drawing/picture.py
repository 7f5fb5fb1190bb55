"""What is drawn of a graph, whatever it is drawn with: steps in order, what forks, what is shared, what never runs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice

from promptlang.compiler.graph import (
    AdoptNode,
    BeamNode,
    ForkNode,
    Graph,
    IfNode,
    Node,
    Region,
    RequireNode,
    TextNode,
    TurnNode,
    UseNode,
)
from promptlang.compiler.passes.findings import Finding
from promptlang.syntax.ast import Template
from promptlang.syntax.walk import names_in

MOST_LENGTH = 10_000
"""Steps that the arrows of data pass, all together: graphviz takes time for each."""

Count = Callable[[str], int]
"""How many tokens a text has."""


@dataclass(frozen=True)
class Step:
    """One node.

    Attributes:
        node: itself.
        kind: `text`, `gen`, `fork`, ...
        label: what it says, on one line.
        is_shared: whether branches start behind it, so that its tokens are computed once for all of them.
        tokens: tokens of its fixed text; None where the model's tokenizer is not at hand or it is no text.
        groups: what is inside, in order.
        notes: what passes did to it.
    """

    node: Node
    kind: str
    label: str
    is_shared: bool = False
    tokens: int | None = None
    groups: "tuple[Group, ...]" = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Group:
    """Steps inside another: a turn's `body`, the `head` that all branches begin with, one `branch`, an arm by its
    name, or what runs `if` a condition holds, or `else`."""

    name: str
    steps: tuple[Step, ...]


@dataclass(frozen=True)
class Flow:
    """Data from the step that makes it to a step that reads it, by node ids; None where it is a parameter."""

    source: int | None
    target: int
    name: str


@dataclass(frozen=True)
class Picture:
    """A whole program.

    Attributes:
        graph: after the passes.
        steps: in order.
        flows: the data.
        pruned: what passes took out.
        first_tokens: tokens that every run begins with; None where the tokenizer is not at hand.
    """

    graph: Graph
    steps: tuple[Step, ...]
    flows: tuple[Flow, ...]
    pruned: tuple[Finding, ...] = ()
    first_tokens: int | None = None


def picture(graph: Graph, findings: Sequence[Finding] = (), count: Count | None = None) -> Picture:
    """What to draw of a program.

    Args:
        graph: after the passes.
        findings: of the passes.
        count: counts tokens, where the model's tokenizer is at hand.
    """
    building = _Building(findings, count)
    steps = building.region(graph.body, False)
    flows = _Flows()
    flows.follow(graph.body, {parameter.name: None for parameter in graph.parameters})
    pruned = tuple(finding for finding in findings if finding.removed)
    first = None if count is None else count(_beginning(graph.body))
    return Picture(graph, steps, tuple(dict.fromkeys(flows.found)), pruned, first)


def all_steps(steps: Sequence[Step]) -> Iterator[Step]:
    """The steps and all steps in them, in order."""
    for step in steps:
        yield step
        for group in step.groups:
            yield from all_steps(group.steps)


def near_flows(picture: Picture) -> list[Flow]:
    """The data that is drawn: the shortest arrows, as many as are `MOST_LENGTH` long together."""
    places = {step.node.id: at for at, step in enumerate(all_steps(picture.steps), 1)}
    lengths = {
        flow: abs(places[flow.target] - (0 if flow.source is None else places[flow.source])) for flow in picture.flows
    }
    sums = accumulate(sorted(lengths.values()))
    near = set(islice(sorted(lengths, key=lengths.__getitem__), sum(length <= MOST_LENGTH for length in sums)))
    return [flow for flow in picture.flows if flow in near]


def shared_tokens(steps: Sequence[Step]) -> dict[int, int]:
    """Tokens of fixed text on the prompt from which a fork's or beam's branches start, its head included, by its node's
    id. What an adopted branch brings is not counted."""
    return dict(_shared_tokens(steps, 0))


def _shared_tokens(steps: Sequence[Step], before: int) -> Iterator[tuple[int, int]]:
    for step in steps:
        inside = before + sum(_own_tokens(group.steps) for group in step.groups if group.name == "head")
        if isinstance(step.node, ForkNode | BeamNode):
            yield step.node.id, inside
        for group in step.groups:
            yield from _shared_tokens(group.steps, inside)
        before += _own_tokens([step])


def _own_tokens(steps: Sequence[Step]) -> int:
    """Tokens of the fixed text that steps add to their prompt."""
    inner = sum(
        _own_tokens(group.steps) for step in steps if step.kind not in ("fork", "beam") for group in step.groups
    )
    return inner + sum(step.tokens or 0 for step in steps)


class _Building:
    """Goes through a program backwards, for a step is shared by the forks behind it."""

    def __init__(self, findings: Sequence[Finding], count: Count | None) -> None:
        self._count = count
        self._notes: dict[int, list[str]] = {}
        for finding in findings:
            if not finding.removed:
                self._notes.setdefault(finding.node.id, []).append(f"{finding.name}: {finding.what}")

    def region(self, region: Region, forks_later: bool) -> tuple[Step, ...]:
        steps: list[Step] = []
        for node in reversed(region.nodes):
            steps.append(self._step(node, forks_later))
            forks_later = (forks_later and not isinstance(node, AdoptNode)) or isinstance(node, ForkNode | BeamNode)
        return tuple(reversed(steps))

    def _step(self, node: Node, forks_later: bool) -> Step:
        tokens = None
        if isinstance(node, TextNode) and self._count is not None:
            tokens = self._count("".join(part for part in node.text.parts if isinstance(part, str)))
        return Step(
            node=node,
            kind=kind_name(node),
            label=label_of(node),
            is_shared=forks_later,
            tokens=tokens,
            groups=tuple(self._groups(node, forks_later)),
            notes=tuple(self._notes.get(node.id, ())),
        )

    def _groups(self, node: Node, forks_later: bool) -> Iterator[Group]:
        match node:
            case ForkNode():
                if node.head.nodes:
                    yield Group("head", self.region(node.head, True))
                for name, body in zip(node.arms or ("branch",), node.bodies, strict=True):
                    yield Group(name, self.region(body, False))
            case BeamNode():
                yield Group("branch", self.region(node.body, False))
            case IfNode():
                for condition, body in zip(node.conditions, node.bodies, strict=True):
                    yield Group(f"if {one_line(condition.span.text)}", self.region(body, forks_later))
                if node.otherwise.nodes:
                    yield Group("else", self.region(node.otherwise, forks_later))
            case _:
                for inner in node.regions:
                    yield Group("body", self.region(inner, forks_later))


def kind_name(node: Node) -> str:
    """A node's kind, as the language calls it."""
    return type(node).__name__.removesuffix("Node").lower()


def label_of(node: Node) -> str:
    """What a node says, on one line."""
    if isinstance(node, TextNode):
        return template_text(node.text)
    if isinstance(node, TurnNode):
        return node.role
    text = node.span.text
    return one_line(text.split("\n", 1)[0].rstrip(": ") if node.regions else text)


def template_text(template: Template) -> str:
    """A template as it is written, with its line breaks."""
    parts = [part if isinstance(part, str) else "${" + one_line(part.span.text) + "}" for part in template.parts]
    return "".join(parts)


def one_line(text: str) -> str:
    """A text with every run of white space as one space."""
    return " ".join(text.split())


def _beginning(region: Region) -> str:
    """The fixed text that a program begins with, up to what differs between runs; template markup is not counted."""
    pieces: list[str] = []
    _ = _add_beginning(region, pieces)
    return "".join(pieces)


def _add_beginning(region: Region, pieces: list[str]) -> bool:
    """Returns whether everything was fixed."""
    for node in region.nodes:
        if isinstance(node, TurnNode):
            if not _add_beginning(node.body, pieces):
                return False
        elif isinstance(node, TextNode):
            for part in node.text.parts:
                if not isinstance(part, str):
                    return False
                pieces.append(part)
        else:
            return False
    return True


@dataclass
class _Flows:
    """Finds who reads what whom wrote, by the order of the program."""

    found: list[Flow] = field(default_factory=list)
    _inside: dict[int, dict[str, int | None]] = field(default_factory=dict)

    def follow(self, region: Region, writers: dict[str, int | None]) -> None:
        """Go through a region; `writers` holds who wrote each variable last, and is kept up to date."""
        for node in region.nodes:
            match node:
                case RequireNode():
                    self.follow(node.body, writers)
                    self._read(node, node.reads, writers)
                case BeamNode():
                    self._beam(node, writers)
                case _:
                    self._read(node, node.reads, writers)
                    self._enter(node, writers)
            writers.update(dict.fromkeys(node.writes, node.id))

    def _read(self, node: Node, names: Iterable[str], writers: dict[str, int | None]) -> None:
        self.found += [Flow(writers[name], node.id, name) for name in sorted(names) if name in writers]

    def _enter(self, node: Node, writers: dict[str, int | None]) -> None:
        """Go through what is inside a node."""
        match node:
            case ForkNode():
                self._fork(node, writers)
            case UseNode():
                self.follow(node.body, {parameter.name: node.id for parameter in node.parameters})
            case AdoptNode():
                self._adopt(node, writers)
            case _:
                for inner in node.regions:
                    self.follow(inner, writers)

    def _beam(self, node: BeamNode, writers: dict[str, int | None]) -> None:
        """What ranks the paths is read in them, after the body."""
        self._read(node, names_in(node.depth, node.width, node.branch), writers)
        inside = dict(writers)
        self.follow(node.body, inside)
        self._read(node, names_in(node.by), inside)
        self._inside[node.id] = inside

    def _fork(self, node: ForkNode, writers: dict[str, int | None]) -> None:
        self.follow(node.head, writers)
        inside: dict[str, int | None] = {}
        for body in node.bodies:
            own = writers | dict.fromkeys(node.targets, node.id)
            self.follow(body, own)
            inside |= own
        self._inside[node.id] = inside

    def _adopt(self, node: AdoptNode, writers: dict[str, int | None]) -> None:
        """Variables come from the branch that is adopted."""
        for name in sorted(node.reads):
            fork = writers.get(name)
            if fork is not None and fork in self._inside:
                writers.update(self._inside[fork])
