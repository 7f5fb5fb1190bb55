"""Graphs of programs, to be looked at."""

import json
from dataclasses import dataclass

from promptlang.drawing.data import document
from promptlang.drawing.dot import dot, svg
from promptlang.drawing.picture import Picture
from promptlang.drawing.tree import tree


@dataclass(frozen=True)
class GraphView:
    """A program's execution graph after its passes: what runs after what, what forks, what is shared, what never runs.

    As text it is a tree of lines; a notebook shows it as SVG.
    """

    picture: Picture

    def __str__(self) -> str:
        return tree(self.picture)

    def svg(self) -> str:
        """As an SVG document.

        Raises:
            GraphvizMissingError: there is no Graphviz here.
        """
        return svg([self.picture])

    def dot(self) -> str:
        """In Graphviz's language."""
        return dot([self.picture])

    def json(self) -> str:
        """As JSON; `docs/graph.md` says how it looks."""
        return json.dumps(document([self.picture]), ensure_ascii=False, indent=1)

    def _repr_svg_(self) -> str:
        return self.svg()
