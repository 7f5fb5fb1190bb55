"""Texts that stand right before an answer."""

from collections.abc import Iterator

from promptlang.checker.tables import Checked, FragmentInfo
from promptlang.syntax import ast
from promptlang.syntax.walk import adds_nothing, blocks_of


def texts_before(block: ast.Block, end: int, checked: Checked) -> Iterator[ast.Text]:
    """The texts that a prompt may end in before a statement, those of each fragment once.

    Args:
        block: where it stands.
        end: its place there.
        checked: knows the fragments.
    """
    seen: set[FragmentInfo] = set()
    waiting = [(block, end)]
    while waiting:
        block, end = waiting.pop()
        before = next((block[index] for index in range(end - 1, -1, -1) if not adds_nothing(block[index])), None)
        match before:
            case ast.Text():
                yield before
            case ast.If() | ast.For() | ast.While():
                waiting += [(body, len(body)) for body in blocks_of(before)]
            case ast.Use():
                fragment = checked.fragments.get(id(before))
                if fragment is not None and fragment not in seen:
                    seen.add(fragment)
                    waiting.append((fragment.body, len(fragment.body)))
