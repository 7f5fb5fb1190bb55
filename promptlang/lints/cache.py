"""Cache lints: text that calls, branches or rounds would share, but for where it stands.

A cached prompt serves as far as it is equal from its first token on. So what is fixed comes first, and what differs
from one call to the next comes last. Only the text before a prompt's first answer is looked at: what stands behind an
answer usually speaks of it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from os.path import commonprefix

from promptlang.compiler.graph import (
    BeamNode,
    CallNode,
    ForkNode,
    ForNode,
    Graph,
    Node,
    Region,
    RequireNode,
    UseNode,
    WhileNode,
    walk,
)
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Span
from promptlang.lints.reading import Passage, Reading, known_constants
from promptlang.syntax.ast import Expression
from promptlang.syntax.walk import names_in
from promptlang.values.values import Value

WORTH_SAYING = 32
"""Tokens that must be lost before anything is said: a question behind its data is where it belongs."""

BYTES_A_TOKEN = 4
"""Of English text in UTF-8, in the vocabularies of today's models; no tokenizer is loaded for a check."""

Graphs = Mapping[str, Graph]
Count = Callable[[str], int]


@dataclass(frozen=True)
class _Call:
    """A call of a program; `is_again` says whether it stands in what may run several times."""

    caller: Graph
    node: CallNode
    is_again: bool


Calls = dict[str, list[_Call]]
"""The calls of each program, by its name."""


def estimate(text: str) -> int:
    """About how many tokens a text has."""
    return round(len(text.encode()) / BYTES_A_TOKEN)


def lint(graphs: Graphs, count: Count = estimate) -> list[Diagnostic]:
    """What keeps text of a bundle's programs from being shared, each place once.

    Args:
        graphs: all programs, as lowered: before any pass, so that every text stands where it is written.
        count: how many tokens a text has.
    """
    found: dict[Span, Diagnostic] = {}
    calls = _all_calls(graphs)
    for graph in graphs.values():
        for diagnostic in _lints_of(graph, calls, count):
            found.setdefault(diagnostic.span, diagnostic)
    return sorted(found.values(), key=lambda one: (one.span.source.name, one.span.start))


def _lints_of(graph: Graph, calls: Calls, count: Count) -> Iterator[Diagnostic]:
    if _runs_often(graph, calls):
        yield from _in_calls(graph, calls.get(graph.name, []), count)
    names = {*_parameter_names(graph), *_bound_in(graph.body)}
    for node, values in _sharing(graph.body, known_constants(graph.constants, *names)):
        look = _in_branches if isinstance(node, ForkNode) else _in_rounds
        yield from look(node, values, count)


@dataclass(frozen=True)
class _Loss:
    """Fixed text that is computed again.

    Attributes:
        span: the longest run of it.
        tokens: of all of it.
        behind: what it stands behind.
    """

    span: Span
    tokens: int
    behind: Span


def _loss(pieces: Sequence[Passage], behind: Span, count: Count) -> _Loss | None:
    """What is lost of some pieces, if it is worth a word."""
    fixed = [(count(piece.text), piece) for piece in pieces if piece.text]
    tokens = sum(number for number, _ in fixed)
    if tokens < WORTH_SAYING:
        return None
    _, longest = max(fixed, key=lambda one: one[0])
    return _Loss(longest.span, tokens, behind)


def _behind_first(pieces: Sequence[Passage], count: Count) -> _Loss | None:
    """The fixed text behind the first piece that differs."""
    first = next((index for index, piece in enumerate(pieces) if piece.text is None), None)
    return None if first is None else _loss(pieces[first + 1 :], pieces[first].span, count)


# Calls -----------------------------------------------------------------------------------------------------------


def _in_calls(graph: Graph, calls: Sequence[_Call], count: Count) -> Iterator[Diagnostic]:
    varying, fixed = _parameters(graph, calls)
    names = {*_parameter_names(graph), *_bound_in(graph.body)}
    reading = Reading({**known_constants(graph.constants, *names), **fixed}, varying)
    reading.region(graph.body)
    loss = _behind_first(reading.pieces, count)
    if loss is not None:
        yield faults.text_behind_call(loss.span, loss.tokens, loss.behind)


def _parameters(graph: Graph, calls: Sequence[_Call]) -> tuple[set[str], dict[str, Value]]:
    """The parameters that differ from call to call, and the values of those that are left at their defaults."""
    defaults = Reading(dict(graph.constants), set())
    varying: set[str] = set()
    for parameter in graph.parameters:
        given = [(call.caller, call.node.arguments.get(parameter.name)) for call in calls]
        if (not calls and parameter.default is None) or not _is_same(given):
            varying.add(parameter.name)
        elif parameter.default is not None and all(argument is None for _, argument in given):
            defaults.assign(parameter.name, parameter.default, Reading(dict(graph.constants), set()))
    fixed = {name: value for name, value in defaults.values.items() if name in _parameter_names(graph)}
    return varying, fixed


def _is_same(given: Sequence[tuple[Graph, Expression | None]]) -> bool:
    """Whether an argument is the same at every call: left out, or the same constant."""
    first = given[0][1] if given else None
    constant = all(
        argument is None or names_in(argument) <= caller.constants.keys() - set(_parameter_names(caller))
        for caller, argument in given
    )
    return constant and all(argument == first for _, argument in given)


def _all_calls(graphs: Graphs) -> Calls:
    found: Calls = {}
    for caller in graphs.values():
        waiting = [(node, False) for node in caller.body.nodes]
        while waiting:
            node, again = waiting.pop()
            if isinstance(node, CallNode):
                found.setdefault(node.callee, []).append(_Call(caller, node, again))
            again = again or isinstance(node, ForNode | WhileNode | ForkNode | BeamNode | RequireNode)
            waiting += [(held, again) for region in node.regions for held in region.nodes]
    return found


def _runs_often(graph: Graph, calls: Calls) -> bool:
    """Whether a program may run more than once: over rows of data, from several places, in what may run several times,
    or from a program that does."""
    seen: set[str] = set()
    while graph.name not in seen:
        seen.add(graph.name)
        mine = calls.get(graph.name, [])
        if not mine:
            return bool(graph.parameters)
        if len(mine) > 1 or mine[0].is_again:
            return True
        graph = mine[0].caller
    return True


# Branches and rounds ---------------------------------------------------------------------------------------------


def _sharing(region: Region, values: dict[str, Value]) -> Iterator[tuple[Node, dict[str, Value]]]:
    """The forks and loops of a region, at any depth, each with the constants that are known there."""
    for node in region.nodes:
        inner = values
        if isinstance(node, ForkNode | ForNode | WhileNode) and not _runs_once(node, values):
            yield node, values
        if isinstance(node, UseNode):
            names = {parameter.name for parameter in node.parameters} | set(_bound_in(node.body))
            inner = known_constants(node.constants, *names)
        for held in node.regions:
            yield from _sharing(held, inner)


def _runs_once(node: ForkNode | ForNode | WhileNode, values: dict[str, Value]) -> bool:
    """Whether there is surely one branch or one round at most."""
    match node:
        case ForNode(iterable=number) | WhileNode(limit=number) | ForkNode(over=number) if number is not None:
            known = Reading(values, set()).value(number)
            if known is not None:
                [over] = known
                return len(over) < 2 if isinstance(over, list) else over in (0, 1)
    return False


def _in_rounds(node: Node, values: dict[str, Value], count: Count) -> Iterator[Diagnostic]:
    """Text that every round of a loop writes anew."""
    [body] = node.regions
    reading = Reading(dict(values), {*node.writes, *_bound_in(body)})
    reading.region(body)
    loss = _loss(reading.pieces, node.span, count)
    if loss is not None:
        yield faults.repeated_text(loss.span, loss.tokens, loss.behind)


def _in_branches(node: Node, values: dict[str, Value], count: Count) -> Iterator[Diagnostic]:
    assert isinstance(node, ForkNode)
    read = []
    for body in node.bodies:
        reading = Reading(dict(values), set(node.targets))
        reading.region(body)
        read.append(reading.pieces)
    loss = _behind_first(_as_one(read), count)
    if loss is not None:
        yield faults.text_behind_branch(loss.span, loss.tokens, loss.behind)


def _as_one(arms: Sequence[Sequence[Passage]]) -> list[Passage]:
    """The first arm's pieces; once arms differ, what is not in all of them differs."""
    first, *others = arms
    if not others:
        return list(first)
    equal = _common_length(arms)
    rest = [{piece.text for piece in other[equal:]} for other in others]
    return [*first[:equal], *(part for piece in first[equal:] for part in _in_all(piece, rest))]


def _in_all(piece: Passage, others: Sequence[AbstractSet[str | None]]) -> list[Passage]:
    """A piece of one arm, as all arms have it: whole, or the words that it ends in behind what differs."""
    if all(piece.text in texts for texts in others):
        return [piece]
    tail = piece.text or ""
    for texts in others:
        tail = max((_common_tail(tail, text) for text in texts if text), key=len, default="")
    return [Passage(piece.span, None), Passage(piece.span, tail)]


def _common_tail(one: str, other: str) -> str:
    """The words that two texts end in."""
    tail = commonprefix([one[::-1], other[::-1]])[::-1]  # noqa: RUF071 - by characters is what is meant
    return tail[tail.find(" ") :] if " " in tail else ""


def _common_length(arms: Sequence[Sequence[Passage]]) -> int:
    """How many pieces all arms begin with in common."""
    heads = zip(*([piece.text for piece in arm] for arm in arms), strict=False)
    return next((index for index, texts in enumerate(heads) if len(set(texts)) > 1), min(map(len, arms)))


def _parameter_names(graph: Graph) -> list[str]:
    return [parameter.name for parameter in graph.parameters]


def _bound_in(region: Region) -> Iterable[str]:
    return {name for node in walk(region) for name in node.writes}
