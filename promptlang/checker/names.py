"""What the names of a file mean: declarations resolved to shapes, values, programs and fragments."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from promptlang.checker.tables import FragmentInfo, ProgramInfo, ToolInfo
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.diagnostics.source import Span
from promptlang.grammar import shapes
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.regular.regex_parser import parse as parse_pattern
from promptlang.grammar.shapes import Shape, describe
from promptlang.syntax import ast
from promptlang.syntax.limits import MOST_NESTING
from promptlang.syntax.loader import Bundle, LoadError, Unit
from promptlang.values.expressions import EvaluationError, evaluate
from promptlang.values.types import can_end, field_shape, fits
from promptlang.values.values import RecordType, RecordValue, Value, type_name

SIMPLE_TYPES: Mapping[str, Shape] = {
    "str": shapes.Str(),
    "int": shapes.Int(),
    "float": shapes.Float(),
    "bool": shapes.Bool(),
    "none": shapes.Null(),
    "json": shapes.AnyJson(),
}
KINDS: Mapping[type[ast.Declaration], str] = {
    ast.Program: "program",
    ast.Fragment: "fragment",
    ast.Record: "record",
    ast.TypeAlias: "type",
    ast.Const: "const",
    ast.Tool: "tool",
    ast.Import: "import",
}
MOST_PARTS = 1000
_NOTHING = shapes.AnyJson()


@dataclass(eq=False)
class Names:
    """What the names of one file mean.

    Attributes:
        unit: the file.
        prefix: comes before the names of its programs in the bundle (`library.`); empty for the main file.
        is_whole: whether all its declarations could be parsed.
        declared: the declarations by name.
        imports: the names of imported files, by the name of the import.
        types: shapes of records and aliases.
        sizes: how large each of them is.
        constants: values of consts, records and imports.
        programs, fragments, tools: signatures.
    """

    unit: Unit
    prefix: str
    is_whole: bool
    declared: dict[str, ast.Declaration] = field(default_factory=dict)
    imports: "dict[str, Names]" = field(default_factory=dict)
    types: dict[str, Shape] = field(default_factory=dict)
    sizes: "dict[str, Size]" = field(default_factory=dict)
    constants: dict[str, Value] = field(default_factory=dict)
    programs: dict[str, ProgramInfo] = field(default_factory=dict)
    fragments: dict[str, FragmentInfo] = field(default_factory=dict)
    tools: dict[str, ToolInfo] = field(default_factory=dict)

    def find(self, name: str) -> "tuple[Names, ast.Declaration] | None":
        """The declaration that a name (`Reply`, `library.Reply`) means, and the file it stands in."""
        owner, _, rest = name.partition(".")
        if rest:
            return self.imports[owner].find(rest) if owner in self.imports else None
        return (self, self.declared[name]) if name in self.declared else None

    def kind(self, name: str) -> str | None:
        """What a name is declared as (`record`); None where it isn't declared."""
        found = self.find(name)
        return None if found is None else KINDS[type(found[1])]

    def declared_as(self, *kinds: type[ast.Declaration]) -> list[str]:
        """The names of some kinds of declaration, imported ones too."""
        own = [name for name, declaration in self.declared.items() if isinstance(declaration, kinds)]
        return own + [
            f"{name}.{inner}" for name, imported in self.imports.items() for inner in imported.declared_as(*kinds)
        ]


class Resolver:
    """Resolves the declarations of a bundle, imported files first."""

    def __init__(self, bundle: Bundle, diagnostics: list[Diagnostic]) -> None:
        self._diagnostics = diagnostics
        self._done: dict[Unit, Names] = {}
        self.main = self._names(bundle.main, "")

    @property
    def all(self) -> list[Names]:
        """The names of every file, each once."""
        return list(self._done.values())

    def _names(self, unit: Unit, prefix: str) -> Names:
        if unit in self._done:
            return self._done[unit]
        names = Names(unit, prefix, _is_whole(unit))
        self._done[unit] = names
        self._declare(names)
        for name, imported in unit.imports.items():
            names.imports[name] = self._names(imported, f"{prefix}{name}.")
            names.constants[name] = RecordValue(name, names.imports[name].constants)
        types = TypeResolver(names, self._diagnostics)
        for name, declaration in names.declared.items():
            if isinstance(declaration, ast.Record | ast.TypeAlias):
                types.define(name, declaration)
        for declaration in names.declared.values():
            self._define(names, types, declaration)
        return names

    def _declare(self, names: Names) -> None:
        for declaration in names.unit.module.declarations:
            first = names.declared.setdefault(declaration.name, declaration)
            if first is not declaration:
                self._report(faults.declared_twice(declaration.name_span, declaration.name, first.name_span))
            parts = _parts(declaration)
            for index, part in enumerate(parts):
                if any(part.name == earlier.name for earlier in parts[:index]):
                    self._report(
                        faults.named_twice(
                            _name_of(part), "fields" if isinstance(declaration, ast.Record) else "parameters", part.name
                        )
                    )

    def _define(self, names: Names, types: "TypeResolver", declaration: ast.Declaration) -> None:
        match declaration:
            case ast.Const(name=name, value=value):
                names.constants[name] = self._constant(names, value, f"`{name}`")
            case ast.Record(name=name, fields=fields):
                shape = names.types[name]
                if not isinstance(shape, shapes.Record):
                    return
                self._check_finite(declaration, shape)
                given = {item.name: field_shape(shape, item.name) for item in fields if item.default is not None}
                names.constants[name] = RecordType(shape, self._defaults(names, fields, given))
            case ast.Program(name=name, parameters=parameters, returns=returns):
                given = self._signature(names, types, parameters)
                result = None if returns is None else types.resolve(returns)
                names.programs[name] = ProgramInfo(names.prefix + name, declaration, given, result, names.constants)
            case ast.Fragment(name=name, parameters=parameters):
                given = self._signature(names, types, parameters)
                names.fragments[name] = FragmentInfo(names.prefix + name, declaration, given, names.constants)
            case ast.Tool(name=name, parameters=parameters, returns=returns):
                given = self._signature(names, types, parameters)
                result = shapes.Null() if returns is None else types.resolve(returns)
                names.tools[name] = ToolInfo(name, declaration, given, result, names.constants)

    def _signature(
        self, names: Names, types: "TypeResolver", parameters: tuple[ast.Parameter, ...]
    ) -> dict[str, Shape]:
        given = {parameter.name: types.resolve(parameter.type) for parameter in parameters}
        self._defaults(names, parameters, given)
        return given

    def _defaults(self, names: Names, parts: tuple[ast.Parameter, ...], given: Mapping[str, Shape]) -> dict[str, Value]:
        """The values of defaults, checked against the shapes of their parts."""
        defaults = {}
        for part in parts:
            if part.default is not None:
                what = f"the default of `{part.name}`"
                known = len(self._diagnostics)
                value = self._constant(names, part.default, what)
                if len(self._diagnostics) == known and not fits(given[part.name], value):
                    self._report(faults.wrong_type(part.default.span, what, describe(given[part.name]), _shown(value)))
                defaults[part.name] = value
        return defaults

    def _constant(self, names: Names, expression: ast.Expression, what: str) -> Value:
        try:
            return evaluate(expression, names.constants)
        except EvaluationError as error:
            self._report(faults.no_constant(error.span, what, self._why_not_constant(names, error)))
            return None

    def _why_not_constant(self, names: Names, error: EvaluationError) -> str:
        name = error.span.text
        if names.kind(name) in ("const", "record"):
            return f"`{name}` is declared below it"
        return error.message

    def _check_finite(self, declaration: ast.Record, shape: shapes.Record) -> None:
        if not can_end(shape):
            self._report(faults.endless_record(declaration.name_span, declaration.name))

    def _report(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)


class Size(NamedTuple):
    """How large a type is, written out: its parts, and how many of them stand inside each other."""

    parts: int = 1
    depth: int = 1


class _TooLarge(Exception):
    """A type that is too large."""


class TypeResolver:
    """Types as written to shapes, for one file."""

    def __init__(self, names: Names, diagnostics: list[Diagnostic]) -> None:
        self._names = names
        self._diagnostics = diagnostics
        self._open: list[str] = []
        self._uses: set[str] = set()
        self._parts = self._level = self._deepest = 0
        self._is_too_large = False

    def define(self, name: str, declaration: ast.Record | ast.TypeAlias) -> None:
        """Work out the shape of a record or an alias, unless it is known."""
        self._parts = self._level = self._deepest = 0
        try:
            self._names.types[name] = self._declared(name, declaration)
        except _TooLarge:
            if not self._is_too_large:
                is_deep = self._deepest > MOST_NESTING
                fault, most = (faults.type_too_deep, MOST_NESTING) if is_deep else (faults.too_many_parts, MOST_PARTS)
                self._report(fault(declaration.name_span, name, most))
            self._is_too_large = True
            self._names.types[name] = _NOTHING
            self._open, self._uses, self._level = [], set(), 0

    def _declared(self, name: str, declaration: ast.Record | ast.TypeAlias) -> Shape:
        """The shape of a record or an alias of this file; `Recursive` inside a record that is being
        resolved."""
        if name in self._names.types:
            self._count(self._names.sizes.get(name, Size()))
            return self._names.types[name]
        if name in self._open:
            if isinstance(declaration, ast.Record):
                self._uses.add(name)
                return shapes.Recursive(name)
            self._report(faults.endless_alias(declaration.name_span, name))
            return _NOTHING
        self._open.append(name)
        parts, deepest = self._parts, self._deepest
        self._deepest = self._level
        shape = self._record(declaration) if isinstance(declaration, ast.Record) else self.resolve(declaration.type)
        self._open.pop()
        self._uses.discard(name)
        if not self._uses:
            self._names.types[name] = shape
            self._names.sizes[name] = Size(self._parts - parts, self._deepest - self._level)
        self._deepest = max(deepest, self._deepest)
        return shape

    def _count(self, size: Size) -> None:
        """Count what stands inside the type that is being resolved."""
        self._parts += size.parts
        self._deepest = max(self._deepest, self._level + size.depth)
        if self._open and (self._parts > MOST_PARTS or self._deepest > MOST_NESTING):
            raise _TooLarge

    def _record(self, declaration: ast.Record) -> shapes.Record:
        fields = {item.name: shapes.Field(item.name, self.resolve(item.type)) for item in declaration.fields}
        return shapes.Record(declaration.name, tuple(fields.values()))

    def resolve(self, written: ast.TypeExpression) -> Shape:
        """The shape of a type as written; `AnyJson` where it is wrong, which is reported."""
        self._count(Size())
        self._level += 1
        shape = self._shape(written)
        self._level -= 1
        return shape

    def _shape(self, written: ast.TypeExpression) -> Shape:
        match written:
            case ast.NamedType(name=name):
                return self._named(name, written.span)
            case ast.LiteralType(value=value):
                return shapes.Constant(value)
            case ast.UnionType(options=options):
                return shapes.Union(tuple(self.resolve(option) for option in options))
            case ast.ListType(item=item, minimum=minimum, maximum=maximum):
                return shapes.List(self.resolve(item), minimum, maximum)
            case ast.DictType(value=value):
                return shapes.Dict(self.resolve(value))
            case ast.RangeType(base="int", low=low, high=high):
                return shapes.Int(int(low), int(high))
            case ast.RangeType(low=low, high=high):
                return shapes.Float(low, high)
            case ast.BoundedStr(maximum=maximum):
                return shapes.Str(maximum)
            case ast.PatternType(pattern=pattern):
                return self._pattern(pattern, written.span)
            case ast.SchemaType(path=path):
                return self._schema(path, written.span)
            case ast.GrammarType(path=path):
                return self._grammar(path, written.span)
        raise AssertionError(f"no shape for {type(written).__name__}")

    def _named(self, name: str, span: Span) -> Shape:
        if name in SIMPLE_TYPES:
            return SIMPLE_TYPES[name]
        found = self._names.find(name)
        if found is not None and isinstance(found[1], ast.Record | ast.TypeAlias):
            if found[0] is self._names:
                return self._declared(name, found[1])
            self._count(found[0].sizes.get(found[1].name, Size()))
            return found[0].types.get(found[1].name, _NOTHING)
        if self._names.is_whole:
            self._report(
                faults.unknown_type(
                    span, name, [*SIMPLE_TYPES, *self._names.declared_as(ast.Record, ast.TypeAlias), "list", "dict"]
                )
            )
        return _NOTHING

    def _pattern(self, pattern: str, span: Span) -> Shape:
        try:
            parse_pattern(pattern)
        except ConstraintError as error:
            self._report(faults.bad_pattern(span, str(error)))
            return shapes.Str()
        return shapes.Pattern(pattern)

    def _schema(self, path: str, span: Span) -> Shape:
        text = self._file(path, span)
        if text is None:
            return _NOTHING
        try:
            schema = json.loads(text)
        except (ValueError, RecursionError) as error:
            self._report(faults.bad_file(span, f"`{path}` is no JSON: {error}"))
            return _NOTHING
        if not isinstance(schema, dict | bool):
            self._report(faults.bad_file(span, f"`{path}` is no JSON Schema: a schema is an object"))
            return _NOTHING
        return shapes.Schema(json.dumps(schema, separators=(",", ":"), ensure_ascii=False), path)

    def _grammar(self, path: str, span: Span) -> Shape:
        text = self._file(path, span)
        return shapes.Str() if text is None else shapes.ContextFree(text, path)

    def _file(self, path: str, span: Span) -> str | None:
        try:
            return self._names.unit.read(path)
        except LoadError as error:
            self._report(faults.bad_file(span, str(error)))
            return None

    def _report(self, diagnostic: Diagnostic) -> None:
        self._diagnostics.append(diagnostic)


def _parts(declaration: ast.Declaration) -> tuple[ast.Parameter, ...]:
    match declaration:
        case ast.Program() | ast.Fragment() | ast.Tool():
            return declaration.parameters
        case ast.Record(fields=fields):
            return fields
    return ()


def _name_of(part: ast.Parameter) -> Span:
    return Span(part.span.source, part.span.start, part.span.start + len(part.name))


def _is_whole(unit: Unit) -> bool:
    """Whether every error in a file's text lies inside a declaration that is known by name."""
    spans = [declaration.span for declaration in unit.module.declarations]
    errors = [
        diagnostic.span.start for diagnostic in unit.diagnostics if diagnostic.is_error and diagnostic.code != "PL018"
    ]
    return all(any(span.start <= error < span.end for span in spans) for error in errors)


def _shown(value: Value) -> str:
    return f'"{value}"' if isinstance(value, str) and len(value) <= 40 else type_name(value)
