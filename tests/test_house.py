"""The house: who may import whom, what a light start loads, what an installation carries.

A room is a folder of the package. What it may import stands in its own `__init__.py`, in the sentence that begins with
`May import:`; here it is held against what it does import.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from places import DOCS, ROOT

import promptlang

PARTS = ("promptlang", "runtime", "grammar", "kernels")
HEAVY = {"torch", "transformers"}


@cache
def modules() -> Mapping[str, Path]:
    """Every module of ours by its dotted name; a folder's `__init__` goes by the folder's."""
    files = [file for part in PARTS for file in (ROOT / part).rglob("*.py")]
    return {name_of(file): file for file in files}


def name_of(file: Path) -> str:
    names = file.relative_to(ROOT).with_suffix("").parts
    names = names if names[0] == "promptlang" else ("promptlang", *names)
    return ".".join(names).removesuffix(".__init__")


def room_of(module: str) -> str:
    """The folder a module lies in."""
    return module if modules()[module].name == "__init__.py" else module.rpartition(".")[0]


ROOMS = sorted({room_of(module) for module in modules()})


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of ours that a module imports."""
    found = set(imported_modules(modules()[module]))
    return frozenset(name for name in found if name in modules())


def imported_modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in modules() else node.module


def allowed(room: str) -> set[str]:
    """The rooms that a room says it may import."""
    documentation = ast.get_docstring(ast.parse(modules()[room].read_text(encoding="utf-8"))) or ""
    said = re.search(r"^May import: ([^.]*(?:\.\w[^.]*)*)\.$", documentation, re.MULTILINE)
    assert said, f"{room}/__init__.py does not say what it may import"
    words = re.split(r",\s+|\s+and\s+", said[1])
    if words == ["everything"]:
        return set(ROOMS)
    if words == ["nothing of ours"]:
        return set()
    rooms = {f"promptlang.{word}" for word in words}
    assert rooms <= set(ROOMS), f"{room} names rooms that are not there: {rooms - set(ROOMS)}"
    return rooms


def room_imports(room: str) -> dict[str, list[str]]:
    """The other rooms that a room imports, each with who does."""
    found: dict[str, list[str]] = {}
    for module in modules():
        for other in imports(module) if room_of(module) == room else ():
            if room_of(other) != room:
                found.setdefault(room_of(other), []).append(f"{module} imports {other}")
    return found


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_imports_what_it_says(room: str) -> None:
    wrong = [line for other, lines in room_imports(room).items() if other not in allowed(room) for line in lines]
    assert not wrong


@pytest.mark.parametrize("room", [room for room in ROOMS if allowed(room) != set(ROOMS)])
def test_a_room_says_no_more_than_it_imports(room: str) -> None:
    assert allowed(room) <= set(room_imports(room))


def test_rooms_stand_on_floors() -> None:
    """No room imports one that imports it, however far around. A room's own inner rooms are part of it."""
    graph: dict[str, set[str]] = {}
    for room in ROOMS:
        graph.setdefault(outer(room), set()).update(outer(other) for other in room_imports(room))
    for room, others in graph.items():
        others.discard(room)
    refuse_circles(graph)


def outer(room: str) -> str:
    """`promptlang.grammar.engines` is a part of `promptlang.grammar`."""
    return ".".join(room.split(".")[:2])


def test_no_files_import_one_another_in_a_circle() -> None:
    refuse_circles({module: set(imports(module)) - {module} for module in modules()})


def refuse_circles(graph: Mapping[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(f"a circle: {' -> '.join(error.args[1])}")


BEFORE_THE_BACKEND = {"backend", "requests", "sampler", "random_stream", "usage"}


def test_the_interpreter_knows_of_the_engine_only_what_it_asks() -> None:
    asked = {
        other.removeprefix("promptlang.runtime.")
        for module in modules()
        for other in imports(module)
        if room_of(module) == "promptlang.interpreter" and outer(room_of(other)) == "promptlang.runtime"
    }
    assert asked <= BEFORE_THE_BACKEND


@pytest.mark.parametrize("part", ["kernels", "grammar"])
def test_the_ground_floor_knows_nothing_of_what_stands_on_it(part: str) -> None:
    wrong = [
        f"{module} imports {other}"
        for module in modules()
        for other in imports(module)
        if outer(room_of(module)) == f"promptlang.{part}" and outer(room_of(other)) != f"promptlang.{part}"
    ]
    assert not wrong


def test_every_package_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert set(settings["packages"]) == set(ROOMS)


@pytest.mark.parametrize(
    "module",
    ["promptlang", "promptlang.cli.app", "promptlang.cli.check", "promptlang.cli.run", "promptlang.session.session"],
)
def test_a_light_start_loads_no_model_library(module: str) -> None:
    code = f"import {module}, sys; print(*({HEAVY!r} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


def test_tests_see_the_package_itself() -> None:
    assert (
        promptlang.__version__
        == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    )


def test_the_architecture_page_names_every_module() -> None:
    """But for the command line's, which are named after their commands, and for those of rooms inside a room."""
    page = re.sub(r"```.*?```", "", (DOCS / "architecture.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    named = set(re.findall(r"`(\w+)`", page))
    there = {
        module.rpartition(".")[2]
        for module in modules()
        if module not in ROOMS and room_of(module) != "promptlang.cli" and has_a_floor(room_of(module))
    }
    assert there - named == set()


def has_a_floor(room: str) -> bool:
    """Whether a room stands in the house itself: the engine's rooms do."""
    return outer(room) in (room, "promptlang.runtime")
