"""The radix tree on paper."""

from collections.abc import Callable

from promptlang.runtime.cache.prefix_cache import TokenIds
from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.cache.radix_tree import RadixTree


def draw(tree: RadixTree, text_of: Callable[[TokenIds], str], width: int = 80) -> str:
    """A line an edge: how many tokens, who needs them, and their text. `-` begins a branch; a line below it, as far in,
    goes on from there. `=` marks what several live prompts share.

    Args:
        tree: what to draw.
        text_of: the text of some tokens, on one line.
        width: characters of a line; longer texts are cut.
    """
    users = _users(tree)
    lines: list[str] = []
    waiting = [(root, "", "") for root in reversed(tree.roots.values())]
    names = {id(root): repr(namespace) for namespace, root in tree.roots.items() if namespace}
    while waiting:
        node, indent, mark = waiting.pop()
        if node.parent is None:
            caption = " ".join(filter(None, ["prompts", names.get(id(node)), *_claims(node)]))
            lines.append(f"{caption}: {_below(node)} tokens")
        else:
            caption = (
                f"{indent}{mark}{'=' if users[node] > 1 else ' '}{len(node.tokens)} {' '.join(_claims(node))}".rstrip()
            )
            lines.append(f"{caption}  {text_of(node.tokens)}"[:width].rstrip())
        is_fork = len(node.children) > 1
        below = indent + " " * len(mark)
        waiting += [(child, below, "- " if is_fork else "") for child in reversed(node.children.values())]
    return "\n".join(lines)


def _claims(node: RadixNode) -> list[str]:
    """Who needs what ends here."""
    counts = {"held": node.holds, "locked": node.locks, "pinned": node.pins, "expected": len(node.uses)}
    return [name if count == 1 else f"{name}×{count}" for name, count in counts.items() if count]


def _users(tree: RadixTree) -> dict[RadixNode, int]:
    """How many live prompts go through each edge."""
    nodes = list(tree.nodes())
    users = {node: node.holds for node in nodes}
    for node in reversed(nodes):  # children before their parents
        if node.parent is not None:
            users[node.parent] += users[node]
    return users


def _below(root: RadixNode) -> int:
    """How many tokens the edges below a root hold."""
    count, waiting = 0, [root]
    while waiting:
        node = waiting.pop()
        count += len(node.tokens)
        waiting += node.children.values()
    return count
