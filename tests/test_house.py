"""The house: who may import whom, what a light start loads, what an installation carries."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from places import ROOT

import promptlang

ALLOWED = {
    "kernels": {"kernels"},
    "grammar": {"grammar"},
    "runtime": {"runtime", "kernels", "grammar"},
}
HEAVY = {"torch", "transformers"}


def imported_modules(file: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}:{node.lineno}: a relative import"
            assert node.module is not None
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part_of(module: str) -> str | None:
    """Which of the four folders a module is in; None for a module that is not ours."""
    names = module.split(".")
    if names[0] != "promptlang":
        return None
    return names[1] if len(names) > 1 and names[1] in ALLOWED else "promptlang"


@pytest.mark.parametrize("folder", ALLOWED)
def test_imports_run_one_way(folder: str) -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in (ROOT / folder).rglob("*.py")
        for module in imported_modules(file)
        if (part := part_of(module)) is not None and part not in ALLOWED[folder]
    ]
    assert not wrong


BEFORE_THE_BACKEND = {"backend", "requests", "sampler", "random_stream", "usage"}


def test_the_interpreter_knows_of_the_engine_only_what_it_asks() -> None:
    wrong = [
        f"{file.relative_to(ROOT)} imports {module}"
        for file in (ROOT / "promptlang" / "interpreter").rglob("*.py")
        for module in imported_modules(file)
        if module.startswith("promptlang.runtime.") and module.split(".")[2] not in BEFORE_THE_BACKEND
    ]
    assert not wrong


def test_every_package_is_installed() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {name.replace("promptlang.", "", 1): name for name in settings["packages"]}
    there = {
        str(file.parent.relative_to(ROOT)).replace("promptlang/", "").replace("/", ".")
        for part in ("promptlang", *ALLOWED)
        for file in (ROOT / part).rglob("__init__.py")
    }
    assert there == set(folders)


@pytest.mark.parametrize("module", ["promptlang", "promptlang.cli", "promptlang.cli.check", "promptlang.cli.run"])
def test_a_light_start_loads_no_model_library(module: str) -> None:
    code = f"import {module}, sys; print(*({HEAVY!r} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout.split() == []


def test_tests_see_the_package_itself() -> None:
    assert (
        promptlang.__version__
        == tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    )
