"""Constraints served by outlines-core: regular expressions whose table of tokens is small.

Its masks are rows of a table, which can be kept beside the logits. Building the table walks the vocabulary once a
state, about 2 ms where characters are ASCII and 10 ms where they are not (49,152 tokens), and can't be stopped;
llguidance compiles the same in 1 ms. So only expressions of few states come here, and no table is worth a place on
disk.

Two of its properties need a mark (a character that no text holds) before and behind both the expression and the text.
It also builds the automaton that searches anywhere in a text, which can be exponentially larger than the anchored one;
behind a mark a search can begin at one place only. And it drops the ways from a state that can end to one that can't
(`0(\\.5)?` loses `0.5`); before a mark no state can end.
"""

from dataclasses import dataclass

from outlines_core import Index

from promptlang.grammar.constraint import Mask
from promptlang.grammar.regular.regex import Regex, to_text
from promptlang.grammar.vocabulary import MARK, Vocabulary


@dataclass(frozen=True)
class Row:
    """What may come in one state of the table.

    Attributes:
        mask: the tokens.
        only_byte: the byte that all of them begin with, if there is one and the value can't end here.
        can_end: whether the value can end here.
        can_go_on: whether there are tokens at all.
    """

    mask: Mask
    only_byte: int | None
    can_end: bool
    can_go_on: bool


class OutlinesConstraint:
    """A regular expression as a table.

    Args:
        regex: small (see `automaton.table_cost`).
        vocabulary: whose tokens.
    """

    engine = "outlines-core"

    def __init__(self, regex: Regex, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.index = Index(f"{MARK}(?:{to_text(regex)}){MARK}", vocabulary.outlines)
        self._rows: dict[int, Row] = {}

    def start(self) -> "OutlinesState":
        after_mark = self.index.get_next_state(self.index.get_initial_state(), self.vocabulary.size)
        return OutlinesState(self, (after_mark,))

    def row(self, state: int) -> Row:
        """The table's row of a state, worked out when first asked for."""
        if state not in self._rows:
            self._rows[state] = self._make_row(state)
        return self._rows[state]

    def _make_row(self, state: int) -> Row:
        mark = self.vocabulary.size
        allowed = self.index.get_allowed_tokens(state) or []
        can_end = mark in allowed
        tokens = [token for token in allowed if token != mark]
        first = self.vocabulary.first_bytes[tokens]
        is_forced = not can_end and bool((first == first[0]).all())
        return Row(self.vocabulary.mask(tokens), int(first[0]) if is_forced else None, can_end, bool(tokens))


class OutlinesState:
    """A state of the table, and those before it."""

    def __init__(self, constraint: OutlinesConstraint, path: tuple[int, ...]) -> None:
        self._constraint = constraint
        self._path = path

    @property
    def vocabulary(self) -> Vocabulary:
        """Whose tokens."""
        return self._constraint.vocabulary

    @property
    def _row(self) -> Row:
        return self._constraint.row(self._path[-1])

    def mask(self) -> Mask:
        return self._row.mask.copy()

    def forced(self) -> list[int]:
        constraint, state, text = self._constraint, self._path[-1], bytearray()
        while (byte := constraint.row(state).only_byte) is not None:
            tokens = self.vocabulary.by_bytes.get(bytes([byte]))
            if not tokens:
                break
            text.append(byte)
            state = constraint.index.get_next_state(state, tokens[0])
        return self.vocabulary.forced_tokens(bytes(text), is_whole=not constraint.row(state).can_go_on)

    def can_end(self) -> bool:
        return self._row.can_end

    def is_done(self) -> bool:
        return self._row.can_end and not self._row.can_go_on

    def advance(self, token: int) -> None:
        is_legal = token not in self.vocabulary.special_ids
        state = self._constraint.index.get_next_state(self._path[-1], token) if is_legal else None
        if state is None:
            raise ValueError(f"token {token} is not allowed here")
        self._path = (*self._path, state)

    def rollback(self, count: int) -> None:
        self._path = self._path[: len(self._path) - count]

    def fork(self) -> "OutlinesState":
        return OutlinesState(self._constraint, self._path)
