"""Ahead of time: what a run will have to compile, known before a model is there."""

from collections.abc import Iterable, Iterator, Mapping

from promptlang.compiler.graph import GenNode, Graph, Node, SelectNode
from promptlang.compiler.passes.findings import Graphs
from promptlang.compiler.walk import called_by
from promptlang.grammar.shapes import Shape, Str
from promptlang.values.expressions import EvaluationError, evaluate
from promptlang.values.values import Value, render_text


def shapes_ahead(graph: Graph, graphs: Graphs) -> tuple[Shape, ...]:
    """The shapes that a program's answers must have, in program order, each once; those of the programs it calls too.

    Free text needs no constraint and is left out.
    """
    nodes = called_by(graph.body.nodes, graphs)
    return tuple(dict.fromkeys(_constrained(node.shape for node in nodes if isinstance(node, GenNode))))


def _constrained(shapes: Iterable[Shape | None]) -> Iterable[Shape]:
    return (shape for shape in shapes if shape is not None and shape != Str())


def options_ahead(graph: Graph, graphs: Graphs) -> tuple[tuple[str, ...], ...]:
    """The texts of all options that are known before a run, a tuple a `select`, each once; those of the programs it
    calls too."""
    nodes = called_by(graph.body.nodes, graphs)
    return tuple(dict.fromkeys(_known(nodes, graph.constants)))


def _known(nodes: Iterable[Node], constants: Mapping[str, Value]) -> Iterator[tuple[str, ...]]:
    for node in nodes:
        if isinstance(node, SelectNode) and node.reads <= constants.keys():
            try:
                options = _options(node, constants)
            except EvaluationError:
                continue  # the run will fail with this error, at its place
            yield tuple(map(render_text, options))


def _options(node: SelectNode, constants: Mapping[str, Value]) -> list[Value]:
    listed = node.options.get("options")
    if listed is None:
        return [evaluate(choice, constants) for choice in node.choices]
    options = evaluate(listed, constants)
    assert isinstance(options, list), "the checker lets only a list stand here"
    return options
