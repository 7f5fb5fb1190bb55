"""Constraints served by a trie of options: constants, and unions of constants.

The bytes of all options lie in one trie; a state is a node of it, so a fork copies a reference and a rollback goes back
over the nodes passed.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.vocabulary import Mask, Vocabulary


@dataclass(eq=False)
class TrieNode:
    """Where some options stand after the same bytes.

    Attributes:
        children: the nodes after one more byte.
        is_end: whether an option ends here.
        mask: the tokens that may come, filled in when first asked for.
    """

    children: "dict[int, TrieNode]" = field(default_factory=dict)
    is_end: bool = False
    mask: Mask | None = None


class TrieConstraint:
    """A choice among texts.

    Args:
        options: the texts, at least one.
        vocabulary: whose tokens.

    Raises:
        ConstraintError: an option that these tokens can't spell.
    """

    def __init__(self, options: Iterable[str], vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.root = TrieNode()
        for option in options:
            self._add(option)

    def _add(self, option: str) -> None:
        if not all(map(self.vocabulary.can_spell, option)):
            raise ConstraintError(f"this model's tokens can't spell {option!r}")
        node = self.root
        for byte in option.encode():
            node = node.children.setdefault(byte, TrieNode())
        node.is_end = True

    def start(self) -> "TrieState":
        return TrieState(self, (self.root,))

    def mask(self, node: TrieNode) -> Mask:
        """The tokens whose bytes lie on a way down from a node; a copy."""
        if node.mask is None:
            by_bytes = self.vocabulary.by_bytes
            ways = _ways_down(node, self.vocabulary.longest)
            node.mask = self.vocabulary.mask([token for way in ways for token in by_bytes.get(way, ())])
        return node.mask.copy()


def _ways_down(node: TrieNode, longest: int) -> Iterator[bytes]:
    stack = [(b"", node)]
    while stack:
        way, top = stack.pop()
        for byte, child in top.children.items():
            longer = way + bytes([byte])
            yield longer
            if len(longer) < longest:
                stack.append((longer, child))


class TrieState:
    """A node of the trie, and the nodes after each token that led to it."""

    def __init__(self, constraint: TrieConstraint, path: tuple[TrieNode, ...]) -> None:
        self._constraint = constraint
        self._path = path

    @property
    def _node(self) -> TrieNode:
        return self._path[-1]

    @property
    def vocabulary(self) -> Vocabulary:
        """Whose tokens."""
        return self._constraint.vocabulary

    def mask(self) -> Mask:
        return self._constraint.mask(self._node)

    def forced(self) -> list[int]:
        node, text = self._node, bytearray()
        while len(node.children) == 1 and not node.is_end:
            [(byte, node)] = node.children.items()
            text.append(byte)
        return self.vocabulary.forced_tokens(bytes(text), is_whole=not node.children)

    def can_end(self) -> bool:
        return self._node.is_end

    def is_done(self) -> bool:
        return self._node.is_end and not self._node.children

    def advance(self, token: int) -> None:
        node: TrieNode | None = self._node
        text = b"" if token in self.vocabulary.special_ids else self.vocabulary.token_bytes[token]
        for byte in text:
            node = node.children.get(byte) if node else None
        if not text or node is None:
            raise ValueError(f"token {token} is not allowed here")
        self._path = (*self._path, node)

    def rollback(self, count: int) -> None:
        self._path = self._path[: len(self._path) - count]

    def fork(self) -> "TrieState":
        return TrieState(self._constraint, self._path)
