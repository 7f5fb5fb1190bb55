"""The radix tree on paper."""

from promptlang.runtime.cache.prefix_cache import TokenIds
from promptlang.runtime.cache.radix_tree import RadixTree


def draw(tree: RadixTree) -> str:
    """A drawing for debugging: a line a node, indented by depth, long edges shortened."""
    lines: list[str] = []
    waiting = [(root, 0, repr(namespace)) for namespace, root in reversed(tree.roots.items())]
    while waiting:
        node, depth, name = waiting.pop()
        lines.append(f"{'  ' * depth}{name}  locks={node.locks} holds={node.holds} last_use={node.last_use}")
        waiting += [(child, depth + 1, _caption(child.tokens)) for child in reversed(node.children.values())]
    return "\n".join(lines)


def _caption(tokens: TokenIds) -> str:
    shown = " ".join(map(str, tokens[:8].tolist()))
    return f"{shown} ... ({len(tokens)} tokens)" if len(tokens) > 8 else shown
