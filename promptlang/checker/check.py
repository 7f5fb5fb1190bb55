"""Checks a whole bundle: every declaration of every file."""

from collections.abc import Iterator

from promptlang.checker.body import BodyChecker
from promptlang.checker.names import Names, Resolver
from promptlang.checker.tables import Checked, FragmentInfo, ProgramInfo
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.grammar.shapes import Record
from promptlang.syntax import ast
from promptlang.syntax.loader import Bundle
from promptlang.syntax.walk import statements_of


def check(bundle: Bundle) -> Checked:
    """Check a bundle.

    Returns:
        Its diagnostics (those of loading it, too), and the tables that lowering reads; run it only if they
        are `ok`.
    """
    diagnostics = list(bundle.diagnostics)
    resolver = Resolver(bundle, diagnostics)
    checked = Checked(main=tuple(resolver.main.programs))
    checked.records = {name: shape for name, shape in resolver.main.types.items() if isinstance(shape, Record)}
    for names in resolver.all:
        checked.programs |= {info.name: info for info in names.programs.values()}
        _check_file(names, checked, diagnostics)
    _check_circles(resolver.all, checked, diagnostics)
    order = {id(unit.module.source): index for index, unit in enumerate(bundle.units)}
    unique = {
        (order[id(found.span.source)], found.span.start, found.code, found.message): found for found in diagnostics
    }
    checked.diagnostics = [unique[place] for place in sorted(unique)]
    return checked


def _check_file(names: Names, checked: Checked, diagnostics: list[Diagnostic]) -> None:
    """Check the bodies of a file. Where a declaration is lost to a syntax error, what others say of it can't
    be judged."""
    if not names.is_whole:
        return
    infos: list[ProgramInfo | FragmentInfo] = [*names.programs.values(), *names.fragments.values()]
    broken = [found.span.start for found in names.unit.diagnostics if found.is_error]
    for info in infos:
        span = info.declaration.span
        if not any(span.start <= start < span.end for start in broken):
            BodyChecker(names, checked, diagnostics, info.declaration).check(info)


def _check_circles(all_names: list[Names], checked: Checked, diagnostics: list[Diagnostic]) -> None:
    """Report fragments that use themselves, directly or through others."""
    fragments = [fragment for names in all_names for fragment in names.fragments.values()]
    for fragment in fragments:
        circle = _circle(fragment, checked)
        if circle is not None:
            diagnostics.append(
                faults.endless_fragment(fragment.declaration.name_span, [link.declaration.name for link in circle])
            )


def _circle(start: FragmentInfo, checked: Checked) -> list[FragmentInfo] | None:
    """The way from a fragment back to itself."""
    ways = [[start]]
    seen: set[FragmentInfo] = set()
    while ways:
        way = ways.pop(0)
        for used in _used_by(way[-1], checked):
            if used is start:
                return [*way, start]
            if used not in seen:
                seen.add(used)
                ways.append([*way, used])
    return None


def _used_by(fragment: FragmentInfo, checked: Checked) -> Iterator[FragmentInfo]:
    for statement in statements_of(fragment.body):
        if isinstance(statement, ast.Use) and id(statement) in checked.fragments:
            yield checked.fragment(statement)
