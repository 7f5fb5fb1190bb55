"""Who compiles JSON Schemas to constraints: we, and llguidance, outlines-core and xgrammar, each alone and driven as
its own users would for compact JSON."""

import json
from collections.abc import Callable
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


class OutlinesCore:
    name = "outlines-core"

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary

    def compile(self, schema: Any) -> Callable[[], State]:
        from outlines_core import Index
        from outlines_core.json_schema import build_regex_from_schema

        try:
            regex = build_regex_from_schema(json.dumps(schema), whitespace_pattern="")
            index = Index(regex, self._vocabulary.outlines)
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
