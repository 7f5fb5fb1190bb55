"""What is known of a session of typed statements: its declarations and the types of its variables."""

from promptlang.checker.body import BodyChecker
from promptlang.checker.check import check
from promptlang.checker.names import Names, Resolver
from promptlang.checker.statics import Scope
from promptlang.compiler.graph import Graph, Region
from promptlang.compiler.lower import lower, lower_statements
from promptlang.diagnostics.rendering import Diagnostic, render_all
from promptlang.diagnostics.source import Source, Span
from promptlang.syntax import ast
from promptlang.syntax.loader import Bundle, load, load_source
from promptlang.syntax.parser import parse_statements
from promptlang.syntax.walk import statements_of

DECLARATIONS = ("program ", "fragment ", "record ", "type ", "const ", "tool ", "import ")


class Refused(Exception):
    """What was typed can't run; `str()` is what to show."""


class Known:
    """Judges typed text. A statement costs what it says; a declaration, the declarations so far.

    Args:
        file: whose declarations are known from the start.

    Raises:
        Refused: the file has errors.
        LoadError: it can't be read.

    Attributes:
        declared: the text of all declarations.
        variables: what is known of them.
        graphs: the programs; stays the same dict.
        names: what names mean.
    """

    def __init__(self, file: str | None = None) -> None:
        self.variables: Scope = Scope()
        self.graphs: dict[str, Graph] = {}
        self.declared = ""
        self._take(load(file) if file is not None else load_source(Source("", "<repl>")))
        if file is not None:
            self.declared = self.names.unit.module.source.text

    def declare(self, text: str) -> None:
        """Take up declarations.

        Raises:
            Refused: they have errors; nothing changes.
        """
        if text.startswith(("tool ", "import ")):
            raise Refused("error: tools and imports can't be typed here; start with a FILE that has them")
        declared = f"{self.declared}\n\n{text.rstrip()}\n"
        self._take(load_source(Source(declared, "<repl>")))
        self.declared = declared

    def _take(self, bundle: Bundle) -> None:
        checked = check(bundle)
        if not checked.ok:
            raise Refused(render_all(checked.diagnostics))
        unheard: list[Diagnostic] = []  # `check` has reported them
        self.names: Names = Resolver(bundle, unheard).main
        self._checked = checked
        checked.reads_any_scores = True  # what is typed later may read them
        self.graphs.clear()
        self.graphs.update(lower(checked))

    def statements(self, text: str, name: str, line: int = 1) -> tuple[Region, Scope, list[Diagnostic]]:
        """Check statements and lower them.

        Args:
            text: of them.
            name: what messages call where they came from.
            line: the number of its first line there.

        Returns:
            The nodes; the variables when they have run; and the warnings.

        Raises:
            Refused: they have errors.
        """
        source = Source(text, name, line)
        block, diagnostics = parse_statements(source)
        if any(isinstance(statement, ast.Return) for statement in statements_of(block)):
            raise Refused("error: `return` stands in a program; there is none to leave here")
        after = Scope(dict(self.variables.own), opens=self.variables.opens)
        if not any(found.is_error for found in diagnostics):
            whole = Span(source, 0, len(source.text))
            typed = ast.Program(
                span=whole, name="repl", name_span=whole, doc=None, parameters=(), returns=None, body=block
            )
            BodyChecker(self.names, self._checked, diagnostics, typed).check_next(after)
        if any(found.is_error for found in diagnostics):
            raise Refused(render_all(diagnostics))
        return lower_statements(self._checked, block), after, diagnostics
