"""Fragments inside fragments: which use themselves, and how large a program is once all of them stand in place.

That is counted, never written out: of fragments that each use the next one twice, every one doubles the program.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple, TypeAlias

from promptlang.checker.tables import Checked, FragmentInfo, ProgramInfo
from promptlang.diagnostics import faults
from promptlang.diagnostics.rendering import Diagnostic
from promptlang.syntax import ast
from promptlang.syntax.limits import MOST_NESTING, MOST_STATEMENTS
from promptlang.syntax.walk import blocks_of, statements_of

Uses: TypeAlias = Mapping[FragmentInfo, Sequence[FragmentInfo]]
"""The fragments that each fragment uses, each once."""


def check_fragments(
    programs: Sequence[ProgramInfo], fragments: Sequence[FragmentInfo], checked: Checked, diagnostics: list[Diagnostic]
) -> None:
    """Report fragments that use themselves, directly or through others, and what is too large or too deep with its
    fragments in place.

    Args:
        programs, fragments: all of a bundle, their bodies checked.
        checked: which fragment each `use` runs, and where each `require` goes back to.
        diagnostics: what is found is added.
    """
    uses = {fragment: _used_by(fragment.body, checked) for fragment in fragments}
    order = _used_first(uses)
    for fragment, circle in _circles(_without(uses, order)).items():
        diagnostics.append(
            faults.endless_fragment(fragment.declaration.name_span, [link.declaration.name for link in circle])
        )
    sizes = _Sizes(checked)
    infos: list[ProgramInfo | FragmentInfo] = [*order, *programs]
    for info in infos:
        fault = sizes.measure(info)
        if fault is not None:
            diagnostics.append(fault)


def _used_by(block: ast.Block, checked: Checked) -> tuple[FragmentInfo, ...]:
    uses = (statement for statement in statements_of(block) if isinstance(statement, ast.Use))
    return tuple(dict.fromkeys(checked.fragment(use) for use in uses if id(use) in checked.fragments))


def _users_of(uses: Uses) -> dict[FragmentInfo, list[FragmentInfo]]:
    users: dict[FragmentInfo, list[FragmentInfo]] = {fragment: [] for fragment in uses}
    for fragment, used in uses.items():
        for one in used:
            users[one].append(fragment)
    return users


def _without(uses: Uses, left_out: Sequence[FragmentInfo]) -> dict[FragmentInfo, list[FragmentInfo]]:
    kept = uses.keys() - set(left_out)
    return {fragment: [one for one in used if one in kept] for fragment, used in uses.items() if fragment in kept}


def _used_first(uses: Uses) -> list[FragmentInfo]:
    """The fragments, each after those that it uses; without those that a circle is among (Kahn, Topological Sorting of
    Large Networks, 1962)."""
    users = _users_of(uses)
    waiting_for = {fragment: len(used) for fragment, used in uses.items()}
    order = deque(fragment for fragment, count in waiting_for.items() if not count)
    done = []
    while order:
        fragment = order.popleft()
        done.append(fragment)
        for user in users[fragment]:
            waiting_for[user] -= 1
            if not waiting_for[user]:
                order.append(user)
    return done


def _circles(uses: Uses) -> dict[FragmentInfo, list[FragmentInfo]]:
    """The shortest way from each fragment back to itself, where there is one."""
    uses = _without(uses, _used_first(_users_of(uses)))
    ways = {fragment: _way_back(fragment, uses) for fragment in uses}
    return {fragment: way for fragment, way in ways.items() if way is not None}


def _way_back(start: FragmentInfo, uses: Uses) -> list[FragmentInfo] | None:
    before: dict[FragmentInfo, FragmentInfo] = {}
    waiting = deque([start])
    while waiting:
        fragment = waiting.popleft()
        for used in uses[fragment]:
            if used is start:
                way = [start, fragment]
                while way[-1] is not start:
                    way.append(before[way[-1]])
                return way[::-1]
            if used not in before:
                before[used] = fragment
                waiting.append(used)
    return None


class Size(NamedTuple):
    """How large a block is: its statements, and how many of them stand inside each other."""

    statements: int
    depth: int


class _Sizes:
    """Measures what stands in place; fragments must come before who uses them."""

    def __init__(self, checked: Checked) -> None:
        self._checked = checked
        self._of_fragment: dict[FragmentInfo, Size] = {}
        self._refused: set[ProgramInfo | FragmentInfo] = set()

    def measure(self, info: ProgramInfo | FragmentInfo) -> Diagnostic | None:
        """What is wrong with the size of a program or a fragment; of those that use one another, the first is told."""
        if not self._refused.isdisjoint(_used_by(info.declaration.body, self._checked)):
            self._refused.add(info)
            return None
        size = self._block(info.declaration.body)
        fault = _fault(size, info.declaration)
        if fault is not None:
            self._refused.add(info)
        elif isinstance(info, FragmentInfo):
            self._of_fragment[info] = size
        return fault

    def _block(self, block: ast.Block) -> Size:
        statements = 0
        groups: list[tuple[int, int]] = []  # where each begins, and its depth: what a `require` does again is in it
        for index, statement in enumerate(block):
            size = self._statement(statement)
            statements += size.statements
            start, depth = index, size.depth
            checkpoint = self._checked.checkpoint(statement) if isinstance(statement, ast.Require) else None
            while checkpoint is not None and start > checkpoint:
                start, inner = groups.pop()
                depth = max(depth, inner + 1)
            groups.append((start, depth))
        return Size(statements, max((depth for _, depth in groups), default=0))

    def _statement(self, statement: ast.Statement) -> Size:
        if isinstance(statement, ast.Use):
            fragment = self._checked.fragments.get(id(statement))
            inner = [self._of_fragment[fragment]] if fragment in self._of_fragment else []
        else:
            inner = [self._block(block) for block in blocks_of(statement)]
        return Size(1 + sum(size.statements for size in inner), 1 + max((size.depth for size in inner), default=0))


def _fault(size: Size, declaration: ast.Program | ast.Fragment) -> Diagnostic | None:
    if size.statements > MOST_STATEMENTS:
        return faults.too_many_statements(declaration.name_span, declaration.name, MOST_STATEMENTS)
    if size.depth > MOST_NESTING:
        return faults.too_deep_in_place(declaration.name_span, declaration.name, MOST_NESTING)
    return None
