"""A program that is ready to run: what it takes, which tools it calls."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from promptlang.compiler.graph import Graph, Tool
from promptlang.grammar.reader import read
from promptlang.interpreter.host_functions import ToolFunction, functions_of, tools_of
from promptlang.values.conversion import ArgumentsError, bind_arguments
from promptlang.values.values import Value


@dataclass(frozen=True, eq=False)
class Program:
    """One program of a file, ready to run.

    Attributes:
        name: which of the graphs it is.
        graphs: of all programs of its file and its imports, by the names callers use.
    """

    name: str
    graphs: Mapping[str, Graph]

    @property
    def graph(self) -> Graph:
        return self.graphs[self.name]

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools it may call, itself or through the programs it calls."""
        return tools_of(self.graph, self.graphs)

    @property
    def signature(self) -> str:
        """What it takes, for messages."""
        if not self.graph.parameters:
            return "it takes none"
        return f"it takes {', '.join(parameter.span.text for parameter in self.graph.parameters)}"

    def bind(self, given: Mapping[str, Any]) -> dict[str, Value]:
        """A value for every parameter, defaults filled in.

        Args:
            given: JSON data or values, by parameter name.

        Raises:
            ArgumentsError: an argument is missing, unknown, or not of its type.
        """
        return bind_arguments(self.graph, given)

    def typed(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Arguments written as text (on a command line, in a CSV cell) as the data their parameters ask for.

        Scalars stand bare, all else is JSON. Names that are no parameters keep their text.

        Raises:
            ArgumentsError: a text is no value of its parameter's type.
        """
        return {name: self._typed(name, text) if name in self.graph.shapes else text for name, text in texts.items()}

    def _typed(self, name: str, text: str) -> Any:
        try:
            return read(self.graph.shapes[name], text)
        except ValueError as error:
            raise ArgumentsError(f"the argument {name!r} does not fit: {error}") from error

    def functions(self, given: Mapping[str, Any]) -> dict[str, ToolFunction]:
        """The functions of its tools.

        Args:
            given: functions by name; others may be among them.

        Raises:
            ToolError: one is missing, is no function, or can't take what its tool takes.
        """
        return functions_of(self.tools, given)
