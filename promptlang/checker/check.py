"""Checks a whole bundle: every declaration of every file."""

from promptlang.checker.body import BodyChecker
from promptlang.checker.checkpoints import samples
from promptlang.checker.fragments import check_fragments
from promptlang.checker.names import Names, Resolver
from promptlang.checker.tables import Checked, FragmentInfo, ProgramInfo
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.grammar.shapes import Record
from promptlang.syntax.loader import Bundle


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
    diagnostics += [
        faults.nothing_sampled(repeated.span, repeated.so)
        for repeated in checked.repeated
        if not samples(repeated.statements, checked)
    ]
    programs = [info for names in resolver.all for info in names.programs.values()]
    fragments = [info for names in resolver.all for info in names.fragments.values()]
    check_fragments(programs, fragments, checked, diagnostics)
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
