"""Files of programs as every door takes them: loaded, checked, lowered and optimised."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from promptlang.checker.check import check
from promptlang.checker.tables import Checked
from promptlang.compiler.graph import Graph
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.optimise import PASSES, Optimised, optimise
from promptlang.diagnostics.rendering import Diagnostic, render_all
from promptlang.diagnostics.source import Source
from promptlang.lints.cache import lint
from promptlang.syntax.loader import Bundle, load, load_source

if TYPE_CHECKING:
    from promptlang.session.program import Program


class ProgramError(Exception):
    """A file that can't run, for it has errors.

    Args:
        diagnostics: what was found in it, warnings too.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        super().__init__(render_all(diagnostics))
        self.diagnostics = tuple(diagnostics)


class ChoiceError(Exception):
    """A file has no such program, or it is not clear which is meant.

    Args:
        file: its name.
        name: of the program that was asked for; None where none was named.
        names: of those it has.
    """

    def __init__(self, file: str, name: str | None, names: Sequence[str]) -> None:
        listed = ", ".join(names)
        if name is not None:
            message = f"{file} has no program {name!r}; it has {listed or 'none'}"
        elif names:
            message = f"{file} has several programs; choose one: {listed}"
        else:
            message = f"{file} has no program; write `program main():` and a block"
        super().__init__(message)
        self.file, self.name, self.names = file, name, tuple(names)


@dataclass(frozen=True, eq=False)
class ProgramFile:
    """A file of programs and all it imports, checked.

    Attributes:
        name: what messages call it.
        bundle: what it says.
        checked: what the checker found out about it.
        text: of the programs, where they came from no file.
    """

    name: str
    bundle: Bundle
    checked: Checked
    text: str | None = None

    @classmethod
    def load(cls, path: str | Path) -> "ProgramFile":
        """Read and check a file and what it imports.

        Raises:
            LoadError: the file itself can't be read. What is wrong inside is among the diagnostics.
        """
        bundle = load(path)
        return cls(str(path), bundle, check(bundle))

    @classmethod
    def of_text(cls, text: str, name: str = "<text>") -> "ProgramFile":
        """Check text that came from no file; it can't import.

        Args:
            text: of the programs.
            name: what messages call it.
        """
        bundle = load_source(Source(text, name))
        return cls(name, bundle, check(bundle), text)

    @property
    def is_ok(self) -> bool:
        """Whether it can run: no errors (warnings don't count)."""
        return self.checked.ok

    @cached_property
    def diagnostics(self) -> list[Diagnostic]:
        """Everything found, in source order; with what could be better, where nothing is wrong."""
        return [*self.checked.diagnostics, *(lint(self.graphs) if self.is_ok else ())]

    @property
    def names(self) -> tuple[str, ...]:
        """Of its own programs, in order."""
        return self.checked.main

    @cached_property
    def graphs(self) -> dict[str, Graph]:
        """All programs, imported ones too, as lowered; only where the file is ok."""
        return lower(self.checked)

    def optimised(self, passes: Sequence[str] = tuple(PASSES)) -> Optimised:
        """All programs after some passes, with what these did; only where the file is ok."""
        return optimise(self.graphs, passes)

    def program(self, name: str | None = None, passes: Sequence[str] = tuple(PASSES)) -> "Program":
        """A program, ready to run.

        Args:
            name: which; None for the only one, or `main`.
            passes: which optimisations to make.

        Raises:
            ProgramError: the file has errors.
            ChoiceError: there is no such program, or it is not clear which is meant.
        """
        if not self.is_ok:
            raise ProgramError(self.diagnostics)
        from promptlang.session.program import Program  # reads arguments, which needs more than a check does

        return Program(self.choose(name), self.optimised(passes).graphs)

    def choose(self, name: str | None = None) -> str:
        """The name of the program that is meant.

        Raises:
            ChoiceError: there is no such program, or it is not clear which is meant.
        """
        default = self.names[0] if len(self.names) == 1 else "main"
        wanted = default if name is None else name
        if wanted not in self.names:
            raise ChoiceError(self.name, name, self.names)
        return wanted
