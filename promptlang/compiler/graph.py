"""The execution graph: a program as the operations that touch the prompt, the model or the flow of control.

Regions nest as blocks do. The order in a region is the prompt chain; `reads` and `writes` are the data edges.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, Literal, TypeAlias

from promptlang.diagnostics.source import Span
from promptlang.grammar.shapes import Shape
from promptlang.syntax.ast import Expression, Parameter, Template
from promptlang.values.values import Value

Distances: TypeAlias = Mapping[str, int]
"""By program, how many model calls until it is called next."""


@dataclass(frozen=True)
class Region:
    """Nodes that run one after another on one prompt."""

    nodes: "tuple[Node, ...]"


@dataclass(frozen=True, kw_only=True)
class Node:
    """One operation.

    Attributes:
        id: unique in its graph, in program order.
        reads: names of variables that must be known before it runs.
        writes: names it binds.
        ends_prompt: whether nothing on this prompt reads its KV after this node (set by a pass).
        next_calls: the programs that will be called from here on (set by a pass).
    """

    id: int
    span: Span = field(repr=False, compare=False)
    reads: frozenset[str] = frozenset()
    writes: tuple[str, ...] = ()
    ends_prompt: bool = False
    next_calls: Distances = field(default_factory=dict, compare=False, repr=False)

    @property
    def regions(self) -> tuple[Region, ...]:
        """The regions inside, in order."""
        kind: Any = type(self)
        values = [getattr(self, name) for name in _field_names(kind)]
        return tuple(value for value in values if isinstance(value, Region))


@cache
def _field_names(kind: Any) -> tuple[str, ...]:
    return tuple(item.name for item in fields(kind))


@dataclass(frozen=True, kw_only=True)
class TextNode(Node):
    """Extends the prompt."""

    text: Template


@dataclass(frozen=True, kw_only=True)
class TurnNode(Node):
    """A chat turn around what it holds."""

    role: str
    body: Region


@dataclass(frozen=True, kw_only=True)
class GenNode(Node):
    """An answer of a shape (None: free text). `options` are its keyword arguments."""

    target: str | None
    shape: Shape | None
    options: dict[str, Expression]


@dataclass(frozen=True, kw_only=True)
class SelectNode(Node):
    """One of some options. Exactly one of `choices` and `options["options"]` gives them.

    `reads_scores`: whether the program reads `.probs` or `.scores` of the target.
    """

    target: str | None
    choices: tuple[Expression, ...]
    options: dict[str, Expression]
    reads_scores: bool


@dataclass(frozen=True, kw_only=True)
class ScoreNode(Node):
    """The log-probability of a text here."""

    target: str | None
    text: Expression


@dataclass(frozen=True, kw_only=True)
class LetNode(Node):
    """Binds a variable to an expression's value."""

    target: str
    value: Expression


@dataclass(frozen=True, kw_only=True)
class CallNode(Node):
    """Runs a program on a prompt of its own.

    Attributes:
        callee: its name in the graph's bundle.
        arguments: bound by name.
        skipped: calls of the program right before it that were taken out; they count in its name (set by a pass).
        is_started: a `StartNode` before it has begun the call; here its value is bound (set by a pass).
    """

    target: str | None
    callee: str
    arguments: dict[str, Expression]
    skipped: int = 0
    is_started: bool = False


@dataclass(frozen=True, kw_only=True)
class StartNode(Node):
    """Begins a call before its place, so that it runs beside what stands between (put in by a pass)."""

    call: CallNode


@dataclass(frozen=True)
class Tool:
    """A host function as the program declares it.

    Attributes:
        name: the function's.
        parameters: with their defaults, in order; the function gets all of them, by name.
        shapes: what each parameter must look like, by name.
        returns: what the function must return.
        constants: what the names in the defaults mean.
    """

    name: str
    parameters: tuple[Parameter, ...]
    shapes: Mapping[str, Shape]
    returns: Shape
    constants: Mapping[str, Value]


@dataclass(frozen=True, kw_only=True)
class ToolNode(Node):
    """Calls a host function; what follows on this prompt waits for it. `arguments` are bound by name."""

    target: str | None
    tool: Tool
    arguments: dict[str, Expression]


@dataclass(frozen=True, kw_only=True)
class UseNode(Node):
    """Runs a fragment on this prompt, with variables of its own."""

    callee: str
    parameters: tuple[Parameter, ...]
    arguments: dict[str, Expression]
    constants: dict[str, Value]
    body: Region


@dataclass(frozen=True, kw_only=True)
class IfNode(Node):
    """Runs the body of the first true condition, else `otherwise`."""

    conditions: tuple[Expression, ...]
    bodies: tuple[Region, ...]
    otherwise: Region

    @property
    def regions(self) -> tuple[Region, ...]:
        return (*self.bodies, self.otherwise)


@dataclass(frozen=True, kw_only=True)
class ForNode(Node):
    """Runs the body once an item."""

    targets: tuple[str, ...]
    iterable: Expression
    body: Region


@dataclass(frozen=True, kw_only=True)
class WhileNode(Node):
    """Runs the body while the condition holds, at most `limit` rounds (None: the default)."""

    condition: Expression
    limit: Expression | None
    body: Region


@dataclass(frozen=True, kw_only=True)
class JumpNode(Node):
    """`break` or `continue`."""

    kind: Literal["break", "continue"]


@dataclass(frozen=True, kw_only=True)
class ForkNode(Node):
    """Runs branches from one prompt.

    Attributes:
        kind: what tells branches apart: a `count`, the items of a list (`each`, bound to `targets`), or `arms` (one
            body each).
        head: what every branch begins with; runs once, on a prompt that all branches start from (set by a pass).
        is_merged: all branches are equal: one runs, the others are copies of it (set by a pass).
        keeps_prompts: whether a branch's prompt may be read after its end, by `adopt` (cleared by a pass).
    """

    kind: Literal["count", "each", "arms"]
    name: str
    over: Expression | None
    targets: tuple[str, ...]
    arms: tuple[str, ...]
    bodies: tuple[Region, ...]
    allow_none: bool
    head: Region = Region(())
    is_merged: bool = False
    keeps_prompts: bool = True

    @property
    def regions(self) -> tuple[Region, ...]:
        return (self.head, *self.bodies)


@dataclass(frozen=True, kw_only=True)
class BeamNode(Node):
    """Searches in rounds: each path forks `branch` ways, the body runs, the best `width` of all go on.

    `by` ranks them, read in each branch after the body. `keeps_prompts` is as a fork's.
    """

    name: str
    depth: Expression
    width: Expression
    branch: Expression
    by: Expression
    body: Region
    keeps_prompts: bool = True


@dataclass(frozen=True, kw_only=True)
class RequireNode(Node):
    """Runs the body again until the condition holds, at most `retries` times more; then it is a fault with the
    message. The body begins at the checkpoint."""

    body: Region
    condition: Expression
    retries: Expression
    message: Expression | None


@dataclass(frozen=True, kw_only=True)
class KeepNode(Node):
    """Prunes the branches of the enclosing fork."""

    kind: Literal["best", "where", "first"]
    count: Expression | None
    by: Expression | None


@dataclass(frozen=True, kw_only=True)
class AdoptNode(Node):
    """The prompt and the variables become a branch's."""

    branch: Expression


@dataclass(frozen=True, kw_only=True)
class PinNode(Node):
    """Keeps the prompt so far in the cache until the run ends."""


@dataclass(frozen=True, kw_only=True)
class LogNode(Node):
    """Writes a value to the trace and to stderr."""

    value: Expression


@dataclass(frozen=True, kw_only=True)
class ReturnNode(Node):
    """Ends the program with a result."""

    value: Expression


@dataclass(frozen=True)
class Graph:
    """One program.

    Attributes:
        name: as messages call it.
        parameters: with their defaults, in order.
        shapes: what each parameter must look like, by name.
        returns: what the result must look like, where the program says so.
        body: its operations.
        constants: what the names of its file mean.
        on: the name of the model it runs on; None for the one that the run was given.
    """

    name: str
    parameters: tuple[Parameter, ...]
    shapes: Mapping[str, Shape]
    returns: Shape | None
    body: Region
    constants: dict[str, Value]
    on: str | None = None


def with_regions(node: Node, regions: Sequence[Region]) -> Node:
    """The node with other regions inside, in the order of `node.regions`."""
    match node:
        case IfNode():
            *bodies, otherwise = regions
            return replace(node, bodies=tuple(bodies), otherwise=otherwise)
        case ForkNode():
            head, *bodies = regions
            return replace(node, head=head, bodies=tuple(bodies))
    names = [item.name for item in fields(node) if isinstance(getattr(node, item.name), Region)]
    changes: dict[str, Any] = dict(zip(names, regions, strict=True))
    return replace(node, **changes)


def map_regions(region: Region, change: Callable[[Region], Region]) -> Region:
    """The region with every region in it changed, and itself last."""
    nodes = []
    for node in region.nodes:
        regions = []
        for inner in node.regions:
            regions.append(map_regions(inner, change))  # noqa: PERF401 - a comprehension doubles the depth of the stack
        nodes.append(with_regions(node, regions) if regions else node)
    return change(Region(tuple(nodes)))


def walk(region: Region) -> Iterator[Node]:
    """All nodes of a region and of the regions inside, in program order."""
    stack = list(reversed(region.nodes))
    while stack:
        node = stack.pop()
        yield node
        stack.extend(child for inner in reversed(node.regions) for child in reversed(inner.nodes))


def render(graph: Graph) -> str:
    """The graph as an indented list, one node a line: id, kind, what it reads and what it binds."""
    lines = [f"program {graph.name}({', '.join(parameter.name for parameter in graph.parameters)})"]
    stack = [(node, 1) for node in reversed(graph.body.nodes)]
    while stack:
        node, depth = stack.pop()
        lines.append(f"{'  ' * depth}{node.id} {_label(node)}{_flow(node)}")
        stack.extend((child, depth + 1) for inner in reversed(node.regions) for child in reversed(inner.nodes))
    return "\n".join(lines) + "\n"


def _label(node: Node) -> str:
    kind = type(node).__name__.removesuffix("Node").lower()
    match node:
        case TurnNode(role=role):
            return f"{kind} {role}"
        case ForkNode(kind=by, name=name):
            return f"{kind} {by} as {name}"
        case BeamNode(name=name):
            return f"{kind} as {name}"
        case KeepNode(kind=by) | JumpNode(kind=by):
            return f"{kind} {by}"
        case CallNode(callee=callee) | UseNode(callee=callee) | StartNode(call=CallNode(callee=callee)):
            return f"{kind} {callee}"
        case ToolNode(tool=tool):
            return f"{kind} {tool.name}"
        case _:
            return kind


def _flow(node: Node) -> str:
    reads = f" reads {', '.join(sorted(node.reads))}" if node.reads else ""
    writes = f" writes {', '.join(node.writes)}" if node.writes else ""
    return reads + writes
