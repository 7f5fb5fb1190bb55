"""Ahead of time: what a run will have to compile, known before a model is there."""

from collections.abc import Iterable

from promptlang.grammar.shapes import Shape, Str
from promptlang.graph import GenNode, Graph
from promptlang.passes.facts import called_by
from promptlang.passes.findings import Graphs


def shapes_ahead(graph: Graph, graphs: Graphs) -> tuple[Shape, ...]:
    """The shapes that a program's answers must have, in program order, each once; those of the programs it calls too.

    Free text needs no constraint and is left out.
    """
    nodes = called_by(graph.body.nodes, graphs)
    return tuple(dict.fromkeys(_constrained(node.shape for node in nodes if isinstance(node, GenNode))))


def _constrained(shapes: Iterable[Shape | None]) -> Iterable[Shape]:
    return (shape for shape in shapes if shape is not None and shape != Str())
