"""Texts that stand right before an answer."""

from collections.abc import Iterator

from promptlang.checker.tables import Checked
from promptlang.syntax import ast
from promptlang.syntax.walk import adds_nothing, blocks_of


def texts_before(block: ast.Block, end: int, checked: Checked, within: tuple[str, ...] = ()) -> Iterator[ast.Text]:
    """The texts that a prompt may end in before a statement.

    Args:
        block: where it stands.
        end: its place there.
        checked: knows the fragments.
        within: the fragments on the way here.
    """
    before = next((block[index] for index in range(end - 1, -1, -1) if not adds_nothing(block[index])), None)
    match before:
        case ast.Text():
            yield before
        case ast.If() | ast.For() | ast.While():
            for body in blocks_of(before):
                yield from texts_before(body, len(body), checked, within)
        case ast.Use():
            fragment = checked.fragments.get(id(before))
            if fragment is not None and fragment.name not in within:
                yield from texts_before(fragment.body, len(fragment.body), checked, (*within, fragment.name))
