"""Whether a whole text is legal, in time linear in its length whatever the expression (Python's `re` backtracks)."""

import json
from functools import cache, lru_cache

from llguidance import LLMatcher

from promptlang.grammar.engines.earley import EarleyConstraint, compile_grammar
from promptlang.grammar.regular.regex import Regex, to_text
from promptlang.grammar.vocabulary import Vocabulary

END = 256


@cache
def bytes_vocabulary() -> Vocabulary:
    """A token for each byte, and an end."""
    tokens = [bytes([byte]) for byte in range(256)]
    return Vocabulary([*tokens, b""], frozenset([END]), (END,), lambda text: list(text.encode()), "bytes")


def matches(regex: Regex, text: str) -> bool:
    """Whether an expression matches the whole text."""
    return accepts(LLMatcher.grammar_from_regex(to_text(regex)), text)


def finds(pattern: str, text: str) -> bool:
    """Whether a pattern of a JSON Schema matches somewhere in a text, as it does under a mask.

    Raises:
        ConstraintError: it can't be enforced.
    """
    schema = {"type": "string", "pattern": pattern, "x-guidance": {"whitespace_flexible": False}}
    # Data of users may hold what no answer does: halves of characters, U+0000, and U+007F unescaped.
    text = text.encode(errors="replace").decode().replace("\0", "\1")
    written = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
    return accepts(LLMatcher.grammar_from_json_schema(json.dumps(schema)), written)


def accepts(grammar: str, text: str) -> bool:
    """Whether a text is in a grammar, given in llguidance's notation.

    Raises:
        ConstraintError: the grammar can't be compiled.
    """
    matcher = _compiled(grammar).matcher.deep_copy()
    content = list(text.encode())
    return bool(matcher.try_consume_tokens(content) == len(content) and matcher.is_accepting())


@lru_cache(256)
def _compiled(grammar: str) -> EarleyConstraint:
    return compile_grammar(grammar, bytes_vocabulary())
