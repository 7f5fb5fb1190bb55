"""A program that is ready to run: what it takes, which tools it calls."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from promptlang.compiler.graph import Graph, Tool
from promptlang.compiler.walk import programs_from
from promptlang.grammar.reader import read
from promptlang.interpreter.host_functions import ToolFunction, functions_of, tools_of
from promptlang.values.budget import MOST_DEPTH
from promptlang.values.conversion import ArgumentsError, bind_arguments
from promptlang.values.values import Value

_SURROGATE = re.compile("[\ud800-\udfff]")


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
    def models(self) -> tuple[str, ...]:
        """The models that it, or a program it calls, runs on by name; each once."""
        return tuple(sorted({one.on for one in programs_from(self.graph, self.graphs) if one.on is not None}))

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
            ArgumentsError: an argument is missing, unknown, not of its type, or no data that a prompt can hold.
        """
        for name, value in given.items():
            _refuse_unspeakable(name, value)
        try:
            return bind_arguments(self.graph, given)
        except OverflowError as error:
            raise ArgumentsError(f"an argument does not fit: a number is too large for a float ({error})") from error

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
        except (ValueError, OverflowError, RecursionError) as error:
            raise ArgumentsError(f"the argument {name!r} does not fit: {error}") from error

    def functions(self, given: Mapping[str, Any]) -> dict[str, ToolFunction]:
        """The functions of its tools.

        Args:
            given: functions by name; others may be among them.

        Raises:
            ToolError: one is missing, is no function, or can't take what its tool takes.
        """
        return functions_of(self.tools, given)


def _refuse_unspeakable(name: str, value: Any, depth: int = 0) -> None:
    """Refuse what JSON can say and no prompt can hold: half a character, and nesting without end."""
    if depth > MOST_DEPTH:
        raise ArgumentsError(f"the argument {name!r} does not fit: it nests deeper than {MOST_DEPTH} levels")
    match value:
        case str():
            if _SURROGATE.search(value):
                raise ArgumentsError(
                    f"the argument {name!r} does not fit: it holds half a character (a lone surrogate)"
                )
        case list():
            for item in value:
                _refuse_unspeakable(name, item, depth + 1)
        case dict():
            for key, item in value.items():
                _refuse_unspeakable(name, key, depth)
                _refuse_unspeakable(name, item, depth + 1)
