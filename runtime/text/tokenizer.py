"""Text to tokens and back: exact bytes, and data that can never become a control token."""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any

import tokenizers

from promptlang.grammar.vocabulary import Vocabulary
from promptlang.runtime.text.added_tokens import refuse_unsupported
from promptlang.runtime.text.lead import Lead, take_lead
from promptlang.runtime.text.length import LongTextError, bytes_a_token, unspelled
from promptlang.runtime.text.markup import Markup, Part, Run
from promptlang.runtime.text.template import ConversationTemplate, TemplateRefusedError


@dataclass(frozen=True)
class TokenizerSettings:
    """What a model's files say about its tokenizer beside the vocabulary.

    Attributes:
        vocab_size: rows of the model's output head; may exceed the vocabulary, whose missing rows are never
            legal.
        eos_ids: tokens that end an answer.
        names: the tokens that have a name (`bos_token`, `eos_token`, ...), as text; chat templates use them.
        chat_template: Jinja source, or None when the model has none.
    """

    vocab_size: int
    eos_ids: tuple[int, ...]
    names: dict[str, str] = field(default_factory=dict)
    chat_template: str | None = None

    @classmethod
    def from_transformers(
        cls, tokenizer: Any, vocab_size: int | None = None, eos_ids: Sequence[int] = ()
    ) -> "TokenizerSettings":
        """What a transformers tokenizer knows.

        Args:
            tokenizer: a `PreTrainedTokenizerFast`.
            vocab_size: rows of the model's output head; the tokenizer's own size by default.
            eos_ids: more tokens that end an answer (a generation config's).
        """
        own = () if tokenizer.eos_token_id is None else (tokenizer.eos_token_id,)
        template = tokenizer.chat_template
        named = tokenizer.special_tokens_map.items()
        return cls(
            vocab_size=vocab_size or len(tokenizer),
            eos_ids=tuple(dict.fromkeys((*own, *eos_ids))),
            names={name: text for name, text in named if isinstance(text, str)},
            chat_template=template.get("default") if isinstance(template, dict) else template,
        )


class Tokenizer:
    """A tokenizer that keeps control tokens out of data.

    `encode` adds nothing to a text: no beginning-of-text token, and no leading space, for text goes on from other text.
    `encode_after` leads with the space that the model's own tokenizer puts before a text.

    Args:
        backend: the Hugging Face tokenizer; taken over.
        settings: what else the model's files say.

    Attributes:
        vocab_size: rows of the model's output head.
        special_tokens: the added tokens that mark structure, by their text, longest first. A chat template's
            literal text is split on these.
        token_bytes: exact bytes of each token, `vocab_size` entries; empty for control tokens and unused
            rows.
        special_ids: tokens without text.
        eos_ids: tokens that end an answer.
        bos_id: the token that this tokenizer puts before a text by default, if it does.
        fingerprint: equal for tokenizers that encode and decode alike.

    Raises:
        UnsupportedTokenError: a control token would not be found as the backend finds it.
    """

    def __init__(self, backend: tokenizers.Tokenizer, settings: TokenizerSettings) -> None:
        source = backend.to_str()
        definition = json.loads(source)
        added = {token["content"]: token for token in definition["added_tokens"]}
        structure = [text for text in added if added[text]["special"] or not _is_space(text, definition)]
        self._settings = settings
        self.vocab_size = settings.vocab_size
        self.special_tokens: dict[str, int] = {
            text: added[text]["id"] for text in sorted(structure, key=len, reverse=True)
        }
        self.token_bytes = _token_bytes(backend, definition, settings.vocab_size)
        self.special_ids = frozenset(token for token, text in enumerate(self.token_bytes) if not text)
        self.eos_ids = settings.eos_ids
        self.bos_id = _default_bos(backend, settings)
        self.fingerprint = hashlib.blake2b(f"{settings}\n{source}".encode(), digest_size=16).hexdigest()
        markup = [added[text] for text in structure]
        refuse_unsupported(markup, [text for text in added if text not in structure], definition["normalizer"])
        self._markup = Markup(markup)
        self._unspelled = unspelled(self.token_bytes)
        self._bytes_a_token = bytes_a_token(definition, self.token_bytes)
        self._data, self._lead = _data_backend(backend, definition, markup)
        self._control = frozenset(self.special_tokens.values())

    @classmethod
    def from_transformers(
        cls, tokenizer: Any, vocab_size: int | None = None, eos_ids: Sequence[int] = ()
    ) -> "Tokenizer":
        """Take a fast transformers tokenizer; see `TokenizerSettings.from_transformers`."""
        backend = tokenizers.Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        return cls(backend, TokenizerSettings.from_transformers(tokenizer, vocab_size, eos_ids))

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The tokens as constraints need them."""
        return Vocabulary(self.token_bytes, self.special_ids, self.eos_ids, self.encode, self.fingerprint)

    @property
    def has_chat_template(self) -> bool:
        """Whether `render` works at all."""
        return self._settings.chat_template is not None

    def encode(self, text: str) -> list[int]:
        """The tokens of a text that is data and goes on from other text: what looks like a control token stays text.

        Raises:
            ValueError: the tokenizer can write a character only as a control token.
        """
        tokens: list[int] = []
        waiting = [text]
        while waiting:
            part = waiting.pop()
            encoding = self._data.encode(part, add_special_tokens=False)
            if self._control.isdisjoint(encoding.ids):
                tokens += encoding.ids
            else:
                waiting += reversed(self._cut(part, encoding))
        return tokens

    def refuse_long(self, texts: Iterable[str], limit: int, before: int = 0) -> None:
        """Refuse what is surely too long, without tokenising it.

        Args:
            texts: which would be tokenised.
            limit: the most tokens that there may be, with those before.
            before: how many stand before.

        Raises:
            LongTextError: there are more.
        """
        if self._bytes_a_token is None:
            return
        encoded = (text.encode(errors="surrogatepass") for text in texts)
        size = sum(len(text.translate(None, delete=self._unspelled)) for text in encoded)
        least = before - (-size // self._bytes_a_token)
        if least > limit:
            raise LongTextError(least, size)

    def encode_after(self, tokens: Sequence[int], runs: Sequence[Run], limit: int | None = None) -> list[int]:
        """The tokens of literal text and data, as the model's own tokenizer gives them for the whole.

        Control tokens come from literal text alone; all text between two of them is tokenised as one.

        Args:
            tokens: what stands before.
            runs: what follows, in order.
            limit: the most tokens that there may be, with those before; None for any number.

        Raises:
            LongTextError: there are surely more; a few more are not seen.
        """
        added: list[int] = []
        parts = self._markup.split(runs)
        if limit is not None:
            self.refuse_long((part for part in parts if isinstance(part, str)), limit, len(tokens))
        for part in parts:
            if isinstance(part, int):
                added.append(part)
            elif added:
                added += self.encode(self._lead_of(part, is_first=False, last=added[-1]) + part)
            else:
                added += self.encode(self.lead(tokens, part) + part)
        return added

    def lead(self, tokens: Sequence[int], text: str) -> str:
        """The space that this tokenizer puts before a text, where it puts one.

        Args:
            tokens: what stands before the text.
            text: that follows.
        """
        is_first = not tokens or list(tokens) == [self.bos_id]
        return self._lead_of(text, is_first, tokens[-1] if tokens else None)

    def _lead_of(self, text: str, is_first: bool, last: int | None) -> str:
        if self._lead is None:
            return ""
        return self._lead.before(text) if is_first or (self._lead.everywhere and last in self._control) else ""

    def encode_special(self, name: str) -> int:
        """The control token of that name.

        Raises:
            KeyError: there is none.
        """
        return self.special_tokens[name]

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of some tokens; control tokens have none, and what is no UTF-8 becomes U+FFFD."""
        return b"".join(self.token_bytes[token] for token in tokens).decode(errors="replace")

    def parts(self, tokens: Sequence[int]) -> Iterator[Part]:
        """Some tokens for people to read: all their text, and their control tokens by name."""
        for is_control, group in groupby(tokens, self._is_control):
            if is_control:
                yield from (Part(self._data.id_to_token(token) or "", "control") for token in group)
            else:
                pieces = self._lookalike.split(self.decode(list(group)))
                yield from (Part(text, "lookalike" if at % 2 else "text") for at, text in enumerate(pieces) if text)

    def _is_control(self, token: int) -> bool:
        return token in self._control or token in self.special_ids

    @cached_property
    def _lookalike(self) -> re.Pattern[str]:
        return re.compile(f"({'|'.join(map(re.escape, self.special_tokens)) or '(?!)'})")

    def render(
        self,
        messages: list[dict[str, str]],
        add_generation_prompt: bool = False,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> str:
        """A conversation as the model's chat template writes it.

        Args:
            messages: with `role` and `content` each.
            add_generation_prompt: whether the opening of an answer follows.
            options: more that the template may name, such as `enable_thinking`.

        Raises:
            TemplateRefusedError: the model has no chat template, or it refuses these messages.
        """
        return self._template.render(messages, add_generation_prompt, options)

    @property
    def template_names(self) -> frozenset[str]:
        """What the chat template takes from outside, by name; nothing where there is none, or a broken one."""
        try:
            return self._template.names
        except TemplateRefusedError:
            return frozenset()

    @cached_property
    def _template(self) -> ConversationTemplate:
        if self._settings.chat_template is None:
            raise TemplateRefusedError("this model has no chat template; use plain text instead of role blocks")
        return ConversationTemplate(self._settings.chat_template, self._settings.names)

    def _cut(self, text: str, encoding: tokenizers.Encoding) -> list[str]:
        """Some vocabularies hold a control token as ordinary text too: cut the text inside every such name.

        Cuts are made nowhere else, so that all other text keeps its tokens.
        """
        cuts = {0, len(text)}
        for token, (start, end) in zip(encoding.ids, encoding.offsets, strict=True):
            if token in self._control:
                cuts |= {start + 1} if end - start > 1 else {start, end}
        places = sorted(cuts)
        if len(places) > 2:
            return [text[start:end] for start, end in pairwise(places)]
        if len(text) == 1:
            raise ValueError(f"this model's tokenizer can write {text!r} only as a control token")
        return list(text)


def _default_bos(backend: tokenizers.Tokenizer, settings: TokenizerSettings) -> int | None:
    added: list[int] = backend.encode("").ids
    bos = backend.token_to_id(settings.names.get("bos_token", ""))
    return bos if bos is not None and added[:1] == [bos] else None


# Bytes ---------------------------------------------------------------------------------------------------


def _token_bytes(backend: tokenizers.Tokenizer, definition: dict[str, Any], size: int) -> list[bytes]:
    result = [b""] * size
    to_bytes = _byte_reader(definition)
    for text, token in backend.get_vocab(with_added_tokens=False).items():
        result[token] = to_bytes(text)
    for added in definition["added_tokens"]:
        result[added["id"]] = b"" if added["special"] else _added_bytes(added["content"], definition)
    return result


def _added_bytes(text: str, definition: dict[str, Any]) -> bytes:
    """What stands for spaces in the vocabulary does so in added tokens that are white space alone."""
    return _sentence_piece_bytes(text) if _is_space(text, definition) else text.encode()


def _is_space(text: str, definition: dict[str, Any]) -> bool:
    """Whether an added token is white space, which is data; SentencePiece writes a space as U+2581."""
    spelled = text.replace("▁", " ") if _byte_reader(definition) is _sentence_piece_bytes else text
    return spelled.isspace()


def _byte_reader(definition: dict[str, Any]) -> Callable[[str], bytes]:
    """How this vocabulary spells bytes, found from its decoder."""
    kinds = _kinds(definition["decoder"]) | _kinds(definition["pre_tokenizer"])
    if "ByteLevel" in kinds:
        return _byte_level_bytes
    if "WordPiece" in kinds:
        return _word_piece_bytes
    if kinds & {"Metaspace", "ByteFallback"}:
        return _sentence_piece_bytes
    return str.encode


def _kinds(component: Any) -> set[str]:
    if isinstance(component, list):
        return {kind for part in component for kind in _kinds(part)}
    if not isinstance(component, dict):
        return set()
    nested = {kind for part in component.values() for kind in _kinds(part)}
    return nested | {str(component.get("type"))}


def _byte_level_table() -> dict[int, int]:
    """Byte-level BPE writes printable Latin-1 bytes as themselves, the others from U+0100 on."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {0x100 + index: byte for index, byte in enumerate(others)}


_BYTE_LEVEL = _byte_level_table()


def _byte_level_bytes(text: str) -> bytes:
    """A text with a character that spells no byte is an added token's, which the vocabulary may hold too."""
    try:
        return text.translate(_BYTE_LEVEL).encode("latin-1")
    except UnicodeEncodeError:
        return text.encode()


def _sentence_piece_bytes(text: str) -> bytes:
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        return bytes.fromhex(text[3:5])
    return text.replace("▁", " ").encode()


def _word_piece_bytes(text: str) -> bytes:
    return text[2:].encode() if text.startswith("##") else b" " + text.encode()


# Data ----------------------------------------------------------------------------------------------------


def _data_backend(
    backend: tokenizers.Tokenizer, definition: dict[str, Any], markup: list[dict[str, Any]]
) -> tuple[tokenizers.Tokenizer, Lead | None]:
    """A backend to which every text is only text that goes on from other text; and what it leaves out before text."""
    lead = take_lead([definition["normalizer"], definition["pre_tokenizer"]])
    if lead is not None or not all(token["special"] for token in markup):
        for token in markup:
            token["special"] = True
        backend = tokenizers.Tokenizer.from_str(json.dumps(definition))
    backend.encode_special_tokens = True
    return backend, lead
