"""Who compiles JSON Schemas to constraints: we, and llguidance, outlines-core and xgrammar, each alone and driven as
its own users would for compact JSON."""

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.shapes import Schema
from promptlang.grammar.vocabulary import Vocabulary

Mask = npt.NDArray[np.int32]


class Refused(Exception):
    """An engine says that it can't serve a schema."""


class State(Protocol):
    """A place in an answer."""

    def mask(self) -> Mask:
        """The tokens that may come, as packed bits."""

    def advance(self, token: int) -> None:
        """Take a token of the mask."""

    def can_end(self) -> bool:
        """Whether the answer may end here."""


class Engine(Protocol):
    """Compiles schemas; made with the vocabulary whose tokens its masks are of."""

    name: str

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Raises ImportError where the engine isn't installed."""

    def compile(self, schema: Any) -> Callable[[], State]:
        """Compile a schema; what it gives starts an answer. Raises `Refused`."""


class Promptlang:
    name = "promptlang"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def compile(self, schema: Any) -> Callable[[], State]:
        try:
            return compile_constraint(Schema(json.dumps(schema, ensure_ascii=False)), self._vocabulary).start
        except ConstraintError as error:
            raise Refused(str(error)) from error


class Llguidance:
    name = "llguidance"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tokenizer = vocabulary.llguidance

    def compile(self, schema: Any) -> Callable[[], State]:
        from llguidance import LLMatcher

        whole = {"anyOf": [schema]} if isinstance(schema, bool) else schema
        grammar = LLMatcher.grammar_from_json_schema(json.dumps(whole), defaults={"whitespace_flexible": False})
        matcher = LLMatcher(self._tokenizer, grammar, log_level=0)
        if matcher.is_error():
            raise Refused(matcher.get_error())
        return lambda: _LlguidanceState(matcher.deep_copy())


class _LlguidanceState:
    def __init__(self, matcher: Any) -> None:
        self._matcher = matcher

    def mask(self) -> Mask:
        return np.frombuffer(self._matcher.compute_bitmask(), dtype=np.int32)

    def advance(self, token: int) -> None:
        self._matcher.consume_token(token)

    def can_end(self) -> bool:
        return bool(self._matcher.is_accepting())


MARK = chr(0x10FFFF)
"""A character that no token holds, with a token of its own behind the last (see `MaskTable`)."""


@cache
def outlines_vocabulary(vocabulary: Vocabulary) -> Any:
    """The tokens for outlines-core, and `MARK`."""
    import outlines_core

    mark = MARK.encode()
    others = {text: tokens for text, tokens in vocabulary.by_bytes.items() if mark[0] not in text}
    return outlines_core.Vocabulary(vocabulary.eos_ids[0], {**others, mark: [vocabulary.size]})


class OutlinesCore:
    name = "outlines-core"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._tokens = outlines_vocabulary(vocabulary)

    def compile(self, schema: Any) -> Callable[[], State]:
        from outlines_core import Index
        from outlines_core.json_schema import build_regex_from_schema

        try:
            regex = build_regex_from_schema(json.dumps(schema), whitespace_pattern="")
            index = Index(regex, self._tokens)
        except (ValueError, TypeError, RuntimeError) as error:
            raise Refused(str(error)) from error
        return lambda: _OutlinesState(index, self._vocabulary)


class _OutlinesState:
    def __init__(self, index: Any, vocabulary: Vocabulary) -> None:
        self._index = index
        self._vocabulary = vocabulary
        self._state = index.get_initial_state()

    def mask(self) -> Mask:
        allowed = self._index.get_allowed_tokens(self._state) or []
        return self._vocabulary.mask([token for token in allowed if token < self._vocabulary.size])

    def advance(self, token: int) -> None:
        self._state = self._index.get_next_state(self._state, token)

    def can_end(self) -> bool:
        return bool(self._index.is_final_state(self._state))


class MaskTable:
    """A regular expression as outlines-core's table, whose rows are masks, each made when it is first asked for.

    A mark stands before and behind the expression: before it outlines-core searches at one place only, and behind it
    no state can end, for it drops the ways from one that can to one that can't (`0(\\.5)?` loses `0.5`).
    """

    def __init__(self, regex: str, vocabulary: Vocabulary) -> None:
        from outlines_core import Index

        self.vocabulary = vocabulary
        self.index = Index(f"{MARK}(?:{regex}){MARK}", outlines_vocabulary(vocabulary))
        self._masks: dict[int, Mask] = {}

    def start(self) -> "MaskTableState":
        return MaskTableState(self, self.index.get_next_state(self.index.get_initial_state(), self.vocabulary.size))

    def mask(self, state: int) -> Mask:
        """The tokens that may come in a state."""
        if state not in self._masks:
            allowed = self.index.get_allowed_tokens(state) or []
            self._masks[state] = self.vocabulary.mask([token for token in allowed if token < self.vocabulary.size])
        return self._masks[state]


class MaskTableState:
    """A row of the table."""

    def __init__(self, table: MaskTable, state: int) -> None:
        self._table = table
        self._state = state

    def mask(self) -> Mask:
        return self._table.mask(self._state)

    def advance(self, token: int) -> None:
        self._state = self._table.index.get_next_state(self._state, token)


class Xgrammar:
    name = "xgrammar"

    def __init__(self, vocabulary: Vocabulary) -> None:
        import xgrammar  # type: ignore[import-not-found, unused-ignore]

        self._api = xgrammar
        self._words = vocabulary.mask_words
        tokens = xgrammar.TokenizerInfo(
            list(vocabulary.token_bytes), vocab_type=xgrammar.VocabType.RAW, stop_token_ids=list(vocabulary.eos_ids)
        )
        self._compiler = xgrammar.GrammarCompiler(tokens, max_threads=1, cache_enabled=False)

    def compile(self, schema: Any) -> Callable[[], State]:
        try:
            compiled = self._compiler.compile_json_schema(
                json.dumps(schema), any_whitespace=False, separators=(",", ":"), strict_mode=False
            )
        except (RuntimeError, ValueError, TypeError) as error:
            raise Refused(str(error)) from error
        return lambda: _XgrammarState(self._api.GrammarMatcher(compiled), self._words)


class _XgrammarState:
    def __init__(self, matcher: Any, words: int) -> None:
        self._matcher = matcher
        self._words = words

    def mask(self) -> Mask:
        mask = np.full(self._words, -1, dtype=np.int32)
        self._matcher.fill_next_token_bitmask(mask[None])
        return mask

    def advance(self, token: int) -> None:
        self._matcher.accept_token(token)

    def can_end(self) -> bool:
        return bool(self._matcher.is_completed())


PEERS: tuple[type[Engine], ...] = (Llguidance, OutlinesCore, Xgrammar)
