"""What the checker found out about a bundle: the tables that lowering and the command line read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Span
from promptlang.grammar.shapes import Record, Shape
from promptlang.syntax import ast
from promptlang.values.values import Value


@dataclass(frozen=True, eq=False)
class ProgramInfo:
    """A program.

    Attributes:
        name: unique in the bundle: `triage`, or `library.route` where it comes from an import.
        declaration: its AST.
        shapes: what each parameter must look like, by name.
        returns: what the result must look like, where the program says so.
        constants: what the names of its file mean: consts by name, records as `RecordType`, an import as a
            `RecordValue` of its own names.
    """

    name: str
    declaration: ast.Program
    shapes: Mapping[str, Shape]
    returns: Shape | None
    constants: Mapping[str, Value]


@dataclass(frozen=True, eq=False)
class FragmentInfo:
    """A fragment; its names mean what they mean in its own file."""

    name: str
    declaration: ast.Fragment
    shapes: Mapping[str, Shape]
    constants: Mapping[str, Value]

    @property
    def parameters(self) -> tuple[ast.Parameter, ...]:
        return self.declaration.parameters

    @property
    def body(self) -> ast.Block:
        return self.declaration.body


@dataclass(frozen=True, eq=False)
class ToolInfo:
    """A tool; its default values mean what they mean in its own file.

    Attributes:
        name: as the file that declares it calls it; the host function is found by this name.
        returns: what the function must return; none where the program does not say.
    """

    name: str
    declaration: ast.Tool
    shapes: Mapping[str, Shape]
    returns: Shape
    constants: Mapping[str, Value]


@dataclass(frozen=True)
class Repeated:
    """What is run again in the hope of something else.

    Attributes:
        statements: what is run.
        span: who runs it again.
        so: what comes of it where nothing in it is drawn at random.
    """

    statements: ast.Block
    span: Span
    so: str


@dataclass
class Checked:
    """A bundle that was checked.

    Attributes:
        diagnostics: everything found, in source order; errors and warnings.
        programs: all programs, imported ones too, by `ProgramInfo.name`.
        main: the names of the main file's own programs, in order.
        records: the main file's records.
        reads_any_scores: whether `.probs` or `.scores` is read of something whose select is not known.
        repeated: what `require` and `beam` run again.
        gen_shapes, score_readers, callees, tools, fragments, checkpoints: what the methods below look up, by the id of
            the node (a bundle keeps its nodes).
    """

    diagnostics: list[Diagnostic] = field(default_factory=list)
    programs: dict[str, ProgramInfo] = field(default_factory=dict)
    main: tuple[str, ...] = ()
    records: dict[str, Record] = field(default_factory=dict)
    gen_shapes: dict[int, Shape] = field(default_factory=dict, repr=False)
    score_readers: set[int] = field(default_factory=set, repr=False)
    callees: dict[int, ProgramInfo] = field(default_factory=dict, repr=False)
    tools: dict[int, ToolInfo] = field(default_factory=dict, repr=False)
    fragments: dict[int, FragmentInfo] = field(default_factory=dict, repr=False)
    checkpoints: dict[int, int] = field(default_factory=dict, repr=False)
    repeated: list[Repeated] = field(default_factory=list, repr=False)
    reads_any_scores: bool = False

    @property
    def ok(self) -> bool:
        """Whether the bundle can run: no errors (warnings don't count)."""
        return not any(diagnostic.is_error for diagnostic in self.diagnostics)

    def gen_shape(self, gen: ast.Gen) -> Shape | None:
        """What `gen` must produce; None for free text."""
        return self.gen_shapes.get(id(gen))

    def reads_scores(self, select: ast.Select) -> bool:
        """Whether the program reads `.probs` or `.scores` of what this select binds."""
        return self.reads_any_scores or id(select) in self.score_readers

    def callee(self, call: ast.CallExpression) -> ProgramInfo | None:
        """The program that a call runs; None where it calls a builtin, a method or a record."""
        return self.callees.get(id(call))

    def tool(self, call: ast.CallExpression) -> ToolInfo | None:
        """The tool that a call runs; None where it calls none."""
        return self.tools.get(id(call))

    def fragment(self, use: ast.Use) -> FragmentInfo:
        """The fragment that `use` runs."""
        return self.fragments[id(use)]

    def checkpoint(self, require: ast.Require) -> int | None:
        """Which statement of its block `require` goes back to; None where it does not go back."""
        return self.checkpoints.get(id(require))
