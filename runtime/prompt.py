"""Prompt state: tokens, and text that is not tokenised yet.

    tokens ─────────────────────────┐ pending ────────────────────────────────┐
    what a model has seen or will   │ turns opened and text added since; is    │
    see; never tokenised again      │ tokenised at the next model call         │

Text waits so that adjacent pieces are tokenised together, as the whole would be, and so that a template that writes
a message's opening by what follows it (a system prompt inside the first user turn) is rendered right.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from promptlang.runtime.cache.kv_cache import KvCache
from promptlang.runtime.cache.prefix_cache import Namespace
from promptlang.runtime.cache.radix_node import RadixNode
from promptlang.runtime.text.chat_template import ChatTemplate
from promptlang.runtime.text.markup import Run
from promptlang.runtime.text.turns import Close, Mark, Open, Piece, Sent, Text, TurnWriter


class TextTokenizer(Protocol):
    """What a prompt needs of a tokenizer."""

    @property
    def bos_id(self) -> int | None: ...

    def encode_after(self, tokens: Sequence[int], runs: Sequence[Run], limit: int | None = None) -> list[int]: ...


class TokenPrompt:
    """A handle on a conversation: cheap to fork, and the only owner of its text.

    Args:
        tokenizer: turns text into tokens.
        template: the model's chat template.
        cache: where the prompt's KV lies; None for nowhere.
        namespace: whose prompt it is; those of others share nothing with it.
        program: whose prompts it is one of.
        limit: the most tokens that it can ever have; None for any number.

    Attributes:
        has_begun: whether a model was asked on it, or on one that it was forked from.
    """

    def __init__(
        self,
        tokenizer: TextTokenizer,
        template: ChatTemplate,
        cache: KvCache | None,
        namespace: Namespace = (),
        program: str = "",
        limit: int | None = None,
    ) -> None:
        self.cache = cache
        self.namespace = namespace
        self.program = program
        self.has_begun = False
        self._tokenizer = tokenizer
        self._template = template
        self._limit = limit
        self._tree = cache.tree if cache is not None and cache.shares else None
        self._node: RadixNode | None = None
        self._sent = Sent()
        self._pending: list[Piece] = []
        self._marks: list[tuple[Mark, int]] = []
        self._tokens: list[int] = [] if tokenizer.bos_id is None else [tokenizer.bos_id]
        self.ends_in_text = False

    # Growing ---------------------------------------------------------------------------------------

    def open(self, role: str) -> None:
        """Begin a turn of `role`."""
        self._pending.append(Open(role))

    def close(self) -> None:
        """End the turn. The template's closing text is written when something follows."""
        self._pending.append(Close())

    def add(self, text: str) -> None:
        """Append text; it can never become a control token."""
        if text:
            self._pending.append(Text(text))

    def mark(self, tell: Callable[[list[int]], None]) -> None:
        """Remember this place; the text before it and behind it is still tokenised as one.

        Args:
            tell: called by the first `tell_marks` behind it, on this prompt or a fork of it, with the tokens that lie
                wholly before this place; each fork calls it.
        """
        self._pending.append(Mark(tell))

    def tell_marks(self) -> None:
        """Say which tokens lie before the places that were marked. `flush` must have been called before."""
        marks, self._marks = self._marks, []
        for mark, length in marks:
            mark.tell(self._tokens[:length])

    def extend(self, tokens: Sequence[int]) -> None:
        """Append tokens as they are (a model's answer). `flush` must have been called before."""
        assert not self._pending, "tokens can't follow text that is not tokenised yet"
        self._tokens.extend(tokens)
        self._sent = replace(self._sent, is_empty=False)
        self.ends_in_text = False

    def withdraw(self) -> int:
        """Take the last token back (token healing) and return it."""
        self.ends_in_text = False
        return self._tokens.pop()

    def flush(self) -> list[int]:
        """Tokenise what is pending.

        Returns:
            All the prompt's tokens; the list is the prompt's own and must not be changed.

        Raises:
            TemplateError: the chat template can't take the turns.
            LongTextError: there are surely more than `limit`.
        """
        if self._pending:
            writer = TurnWriter(self._template, self._sent)
            writer.write(self._pending)
            tokens = self._encode(writer.runs)
            self._pending.clear()
            self._sent = writer.sent
            marks = [(mark, _shared(tokens, self._encode(writer.runs[:after]))) for mark, after in writer.marks]
            if tokens[:1] == self._tokens == [self._tokenizer.bos_id]:
                self._tokens.clear()  # the template writes the beginning token itself
            known = len(self._tokens)
            self._marks += [(mark, known + length) for mark, length in marks]
            self._tokens.extend(tokens)
            written = [run for run in writer.runs if run.text]
            self.ends_in_text = bool(written) and not written[-1].literal
        return self._tokens

    def _encode(self, runs: Sequence[Run]) -> list[int]:
        return self._tokenizer.encode_after(self._tokens, runs, self._limit)

    # Sharing ---------------------------------------------------------------------------------------

    def fork(self) -> "TokenPrompt":
        """Another handle on the same conversation; their KV is shared."""
        twin = TokenPrompt.__new__(TokenPrompt)
        twin.__dict__.update(self.__dict__)
        twin._tokens = self._tokens.copy()
        twin._pending = self._pending.copy()
        twin._marks = self._marks.copy()
        if self._tree is not None and self._node is not None:
            self._tree.hold(self._node)
        return twin

    @property
    def node(self) -> RadixNode | None:
        """Where in the tree its KV is held up to."""
        return self._node

    def hold(self, node: RadixNode | None) -> None:
        """Say where in the tree the prompt now ends; its KV is the last to be evicted."""
        if self._tree is None:
            return
        if node is not None:
            self._tree.hold(node)
        self.release()
        self._node = node

    def release(self) -> None:
        """Let the KV go; the prompt itself stays usable (its tokens would be computed again)."""
        if self._tree is not None and self._node is not None:
            self._tree.drop(self._node)
        self._node = None


def _shared(left: list[int], right: list[int]) -> int:
    """How many tokens two lists begin with alike."""
    return next((at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right)))
