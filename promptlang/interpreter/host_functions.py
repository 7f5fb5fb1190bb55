"""Tools: Python functions that programs call, given by whoever runs them."""

import inspect
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

from promptlang.compiler.graph import Graph, Tool, ToolNode
from promptlang.compiler.walk import called_by
from promptlang.grammar.reader import validate
from promptlang.grammar.shapes import describe
from promptlang.syntax.loader import shown_path
from promptlang.values.budget import MOST_DEPTH
from promptlang.values.conversion import from_json, to_json
from promptlang.values.values import Value

ToolFunction: TypeAlias = Callable[..., Any]

_MODULE = "promptlang_tools"


class ToolError(Exception):
    """A tool that is missing, can't be called, or failed; `str()` says which, and what would put it right."""


# Which tools, and which functions --------------------------------------------------------------------


def tools_of(graph: Graph, graphs: Mapping[str, Graph]) -> tuple[Tool, ...]:
    """The tools that a program may call, itself or through the programs it calls; by name, each once."""
    nodes = called_by(graph.body.nodes, graphs)
    tools = {(node.tool.name, node.tool.parameters): node.tool for node in nodes if isinstance(node, ToolNode)}
    return tuple(sorted(tools.values(), key=lambda tool: tool.name))


def functions_of(tools: Iterable[Tool], given: Mapping[str, Any]) -> dict[str, ToolFunction]:
    """The functions of some tools.

    Args:
        tools: as programs declare them.
        given: functions by name; others may be among them.

    Raises:
        ToolError: one is missing, is no function, or can't take what its tool takes.
    """
    functions: dict[str, ToolFunction] = {}
    for tool in tools:
        if tool.name not in given:
            raise ToolError(f"the tool `{tool.name}` is missing; define `{python_signature(tool)}`")
        _check_function(tool, given[tool.name])
        functions[tool.name] = given[tool.name]
    return functions


def _check_function(tool: Tool, function: Any) -> None:
    wanted = f"define `{python_signature(tool)}`"
    if not callable(function):
        raise ToolError(f"the tool `{tool.name}` is no function but {type(function).__name__}; {wanted}")
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        raise ToolError(f"the tool `{tool.name}` is async, and tools run in threads of their own; {wanted}")
    try:
        signature = inspect.signature(function)
    except ValueError:
        return  # a function written in C may not say what it takes
    try:
        signature.bind(**{parameter.name: None for parameter in tool.parameters})
    except TypeError as error:
        shown = f"{tool.name}{signature}"
        raise ToolError(f"the tool `{tool.name}` does not fit `{shown}`: {error}; {wanted}") from error


def python_signature(tool: Tool) -> str:
    """The head of a Python function that fits a tool: `def search(query, limit)`."""
    return f"def {tool.name}({', '.join(parameter.name for parameter in tool.parameters)})"


def load_functions(path: str | Path) -> dict[str, Any]:
    """What a Python file defines, by name. The file runs as `python FILE` would run it, but for its `__name__`.

    Raises:
        ToolError: it can't be read, or fails.
    """
    file = Path(path)
    if not os.path.isfile(file):
        raise ToolError(f"there is no file `{path}`")
    spec = spec_from_file_location(_MODULE, file.resolve(), submodule_search_locations=None)
    if spec is None or spec.loader is None:
        raise ToolError(f"`{path}` is no Python file; its name must end in .py")
    module: ModuleType = module_from_spec(spec)
    sys.modules[_MODULE] = module  # data classes look their module up
    sys.path.insert(0, str(file.resolve().parent))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise ToolError(f"`{path}` fails: {_raised(error, str(file.resolve()))}") from error
    return vars(module)


# Calls -----------------------------------------------------------------------------------------------


def call(tool: Tool, function: ToolFunction, arguments: Mapping[str, Value]) -> Value:
    """Call a function, and take what it returns as a value of the tool's type.

    Args:
        tool: as the program declares it.
        function: gets every argument by name, as plain data: records as dicts.
        arguments: already validated.

    Raises:
        ToolError: the function raised, or returned what the tool does not promise.
    """
    try:
        data = _plain(function(**{name: to_json(value) for name, value in arguments.items()}))
    except _NoDataError as error:
        raise _unfit(tool, error) from error
    except BaseException as error:
        raised = _raised(error, inspect.getsourcefile(inspect.unwrap(function)) if _has_source(function) else None)
        raise ToolError(f"the tool `{tool.name}` failed: {raised}") from error
    try:
        validate(tool.returns, data)
    except ValueError as error:
        raise _unfit(tool, error) from error
    return from_json(tool.returns, data)


def _unfit(tool: Tool, error: ValueError) -> ToolError:
    return ToolError(
        f"the tool `{tool.name}` must return {describe(tool.returns)}, and what it returned does not fit: {error}"
    )


def _has_source(function: ToolFunction) -> bool:
    return inspect.isfunction(inspect.unwrap(function))


def _raised(error: BaseException, file: str | None) -> str:
    """An exception in one line: its type, its message, and the last place in the file, or the last of all."""
    message = " ".join(_message(error).split())
    said = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SyntaxError):
        return said  # says where by itself
    frames = traceback.extract_tb(error.__traceback__)
    where = next((frame for frame in reversed(frames) if frame.filename == file), frames[-1])
    return f"{said} ({shown_path(Path(where.filename))}:{where.lineno})"


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as second:
        return f"its message can't be had: {type(second).__name__}"


class _NoDataError(ValueError):
    """What a function returned is no JSON data that a program can hold."""


def _plain(value: Any, depth: int = 0) -> Any:
    """What a function returned as JSON data of its own: nobody can change it later.

    Raises:
        _NoDataError: it is no such data. What a value of a type of its own raises as it is read comes through.
    """
    if depth > MOST_DEPTH:
        raise _NoDataError(f"it nests deeper than {MOST_DEPTH} levels")
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)
        case int():
            return _readable(int(value))
        case float():
            return float(value)
        case list() | tuple():
            return [_plain(item, depth + 1) for item in value]
        case dict():
            return {_key(key): _plain(item, depth + 1) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return _plain(asdict(value), depth + 1)
    raise _NoDataError(f"{type(value).__name__} is no plain data; return text, numbers, lists, dicts or data classes")


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise _NoDataError(f"a key of a dict must be a str, not {type(key).__name__}")
    return str.__str__(key)


def _readable(number: int) -> int:
    """Refuse what no prompt and no result could write out."""
    most = sys.get_int_max_str_digits()
    if most and number.bit_length() > 3 * most and abs(number) >= 10**most:
        raise _NoDataError(f"a number has more than {most} digits")
    return number
