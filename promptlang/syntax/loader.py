"""Reads a program's file and the files it imports. Nothing outside the folder of the program's file is
read."""

import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Source
from promptlang.syntax import ast
from promptlang.syntax.parser import parse


class LoadError(Exception):
    """A file that can't be read: `str()` says which and why, in one sentence."""


@dataclass(eq=False)
class Unit:
    """One file of a bundle.

    Attributes:
        module: its AST.
        folder: where paths in it start; None where the text came from no file.
        root: the folder that no path may leave.
        diagnostics: what was wrong with its text and its imports.
        imports: the files it imports, by the names it gives them.
        files: the other files it reads: schemas and grammars.
    """

    module: ast.Module
    folder: Path | None
    root: Path | None
    diagnostics: list[Diagnostic]
    imports: dict[str, "Unit"] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)

    def read(self, path: str) -> str:
        """The text of a file that the program names, relative to the program's own.

        Raises:
            LoadError: it can't be read, or lies outside the folder of the program.
        """
        found = self.locate(path)
        self.files.append(found)
        return read_text(found, path)

    def locate(self, path: str) -> Path:
        """Where a file that the program names lies.

        Raises:
            LoadError: it lies outside the folder of the program.
        """
        if self.folder is None or self.root is None:
            raise LoadError(f"`{path}` can't be found: this program has no folder")
        try:
            found = (self.folder / path).resolve()
        except (OSError, ValueError, RuntimeError):
            raise LoadError(f"`{path}` is no path") from None
        if not found.is_relative_to(self.root):
            raise LoadError(f"`{path}` lies outside the folder of the program")
        return found


@dataclass(frozen=True, eq=False)
class Bundle:
    """A program's file and all it imports, directly or not."""

    main: Unit

    @property
    def units(self) -> list[Unit]:
        """Every file once, the main one first."""
        return list(dict.fromkeys(_walk(self.main)))

    @property
    def diagnostics(self) -> list[Diagnostic]:
        """What was wrong with the text and the imports of all files."""
        return [diagnostic for unit in self.units for diagnostic in unit.diagnostics]


def _walk(unit: Unit) -> Iterator[Unit]:
    yield unit
    for imported in unit.imports.values():
        yield from _walk(imported)


def load(path: str | Path) -> Bundle:
    """Read a program's file and what it imports.

    Raises:
        LoadError: the file itself can't be read. (An import that can't be read is a diagnostic.)
    """
    place = Path(path)
    text = read_text(place, str(path))
    return Bundle(_Loader(place.resolve().parent).unit(Source(text, str(path)), place.resolve()))


def load_source(source: Source) -> Bundle:
    """A bundle of text that came from no file; it can't import."""
    return Bundle(_Loader(None).unit(source, None))


class _Loader:
    """Loads each file once, and knows which are being loaded."""

    def __init__(self, root: Path | None) -> None:
        self._root = root
        self._loaded: dict[Path, Unit] = {}
        self._open: list[Path] = []

    def unit(self, source: Source, path: Path | None) -> Unit:
        module, diagnostics = parse(source)
        unit = Unit(module, None if path is None else path.parent, self._root, diagnostics)
        if path is not None:
            self._open.append(path)
            self._loaded[path] = unit
        for declaration in module.declarations:
            if isinstance(declaration, ast.Import):
                self._import(unit, declaration)
        if path is not None:
            self._open.pop()
        return unit

    def _import(self, unit: Unit, declaration: ast.Import) -> None:
        try:
            path = unit.locate(declaration.path)
            if path in self._open:
                raise LoadError(f"`{declaration.path}` imports this file in turn: imports can't go in a circle")
            if path not in self._loaded:
                self.unit(Source(read_text(path, declaration.path), shown_path(path)), path)
        except LoadError as error:
            unit.diagnostics.append(faults.bad_import(declaration.span, str(error)))
        else:
            unit.imports[declaration.name] = self._loaded[path]


def shown_path(path: Path) -> str:
    """A path as messages show it: relative to where the user stands, if it is below."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def read_text(path: Path, shown: str) -> str:
    """The text of a file, without a byte-order mark.

    Args:
        path: where it lies.
        shown: what messages call it.

    Raises:
        LoadError: it can't be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not path.is_dir():
            raise LoadError(f"`{shown}` is a pipe or a device; give a file")
        return decode(path.read_bytes(), shown)
    except FileNotFoundError:
        raise LoadError(f"there is no file `{shown}`") from None
    except OSError as error:
        raise LoadError(f"`{shown}` can't be read: {(error.strerror or str(error)).lower()}") from None


def decode(data: bytes, shown: str) -> str:
    """The text of a file's bytes, without a byte-order mark.

    Raises:
        LoadError: they are not UTF-8.
    """
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LoadError(f"`{shown}` is not UTF-8 text (byte {error.start})") from None
