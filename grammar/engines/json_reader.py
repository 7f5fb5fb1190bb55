"""What has been read of a JSON text, and what of it must not be said again.

The text is followed byte by byte, so that it is known in which array an item ends and what it is. Where an array must
hold no value twice, what can only become an item that is there already is looked for backwards from each item's end: a
beginning is dead where all that may follow leads to dead ones.
"""

import json
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Protocol, TypeAlias

from promptlang.grammar.constraint import State
from promptlang.grammar.vocabulary import Vocabulary

BEHIND_SCALARS = (b",", b"]")
"""What can stand behind a number, which has no end of its own; a schema's JSON is on one line."""

ZEROS = (b"0", b"-0")
"""The one integer that has two texts."""


class Place(Protocol):
    """A place in a JSON value."""

    @property
    def is_unique(self) -> bool:
        """Whether an array here must hold no value twice."""

    def inside(self, key: str | int) -> "Place":
        """The place of a property or an item."""


@dataclass(frozen=True)
class Before:
    """Where an item began: the state before the token that it began in, and the bytes of that token before it."""

    state: State
    head: bytes


Dead: TypeAlias = tuple[bytes, ...]
"""Beginnings of items after which only items can come that are there already."""


@dataclass(frozen=True)
class Frame:
    """An array or an object under way.

    Attributes:
        place: its own.
        is_array: or an object.
        is_unique: whether it is an array that must hold no value twice.
        index: how many items are whole.
        key: the name of the property at hand.
        begin: where the item at hand, or the name of a property, begins in the text; -1 where none does.
        is_named: whether the property at hand has its name.
        used: the items, where it must hold no value twice.
        dead: see `Dead`.
        before: where the item at hand began; None where that isn't known.
        walks: `dead` once the item at hand has ended, by its text.
    """

    place: Place
    is_array: bool
    is_unique: bool
    index: int = 0
    key: str = ""
    begin: int = -1
    is_named: bool = False
    used: frozenset[Hashable] = frozenset()
    dead: Dead = ()
    before: Before | None = None
    walks: dict[bytes, Dead] = field(default_factory=dict, compare=False)

    def inside(self) -> Place:
        """The place of what begins here."""
        return self.place.inside(self.index if self.is_array else self.key)


class Repeated(Exception):
    """An item that is there already, or after which no other one could come."""


@dataclass(frozen=True)
class Reader:
    """What has been read of a JSON text.

    Attributes:
        place: of the whole value.
        text: so far.
        frames: the arrays and objects under way, outermost first.
        in_string: whether a string is under way.
        is_escaped: whether a backslash was the last.
    """

    place: Place
    text: bytes = b""
    frames: tuple[Frame, ...] = ()
    in_string: bool = False
    is_escaped: bool = False

    def after(self, token: bytes, before: State | None = None) -> "Reader":
        """The text with a token more.

        Args:
            token: its bytes.
            before: the state in front of it, where it is known.

        Raises:
            Repeated: it ends an item that is there already.
        """
        reader = self
        for at, byte in enumerate(token):
            reader = reader._step(byte, Before(before, token[:at]) if before else None)
        return reader

    def _step(self, byte: int, before: Before | None) -> "Reader":
        grown = replace(self, text=self.text + bytes([byte]))
        if self.in_string:
            return grown._in_string(byte)
        if not self.frames and (self.text or byte not in b"[{"):
            return grown  # no JSON with parts, or behind it
        match chr(byte):
            case '"':
                return replace(grown._begun(before), in_string=True)
            case "[" | "{":
                return grown._opened(before, is_array=byte == ord("["))
            case "]" | "}":
                return grown._closed()
            case ",":
                return grown._next()
            case ":":
                return grown._top(is_named=True, begin=-1)
            case " ":
                return grown
        return grown._begun(before)

    def _in_string(self, byte: int) -> "Reader":
        if self.is_escaped or byte != ord('"'):
            return replace(self, is_escaped=byte == ord("\\") and not self.is_escaped)
        return replace(self, in_string=False)._ended()

    def _top(self, **changes: Any) -> "Reader":
        if not self.frames:
            return self
        return replace(self, frames=(*self.frames[:-1], replace(self.frames[-1], **changes)))

    def _begun(self, before: Before | None) -> "Reader":
        """An item, or the name of a property, begins with the last byte, unless one has."""
        if not self.frames or self.frames[-1].begin >= 0:
            return self
        return self._top(begin=len(self.text) - 1, before=before if self.frames[-1].is_unique else None)

    def _opened(self, before: Before | None, is_array: bool) -> "Reader":
        place = self.frames[-1].inside() if self.frames else self.place
        begun = self._begun(before)
        return replace(begun, frames=(*begun.frames, Frame(place, is_array, is_array and place.is_unique)))

    def _closed(self) -> "Reader":
        if not self.frames:
            return self
        if self.frames[-1].is_unique:
            self._check_scalar()
        return replace(self, frames=self.frames[:-1])._ended()

    def _ended(self) -> "Reader":
        """What has an end of its own, a string or what is in brackets, ended with the last byte."""
        frame = self.frames[-1] if self.frames else None
        if frame is None:
            return self
        if not frame.is_array:
            name = None if frame.is_named else json.loads(self.text[frame.begin :])
            return self if name is None else self._top(key=name)
        if frame.is_unique and value_of(self.text[frame.begin :]) in frame.used:
            raise Repeated
        return self

    def _check_scalar(self) -> bytes:
        """The item that ended before the last byte."""
        frame = self.frames[-1]
        item = self.text[frame.begin : -1].strip() if frame.begin >= 0 else b""
        if item and value_of(item) in frame.used:
            raise Repeated
        return item

    def _next(self) -> "Reader":
        """An item, or a property, has ended, and another must come."""
        if not self.frames:
            return self
        frame = self.frames[-1]
        if not frame.is_unique:
            return self._top(index=frame.index + 1, begin=-1, is_named=False)
        item = self._check_scalar()
        dead = dead_after(frame, item)
        if b"" in dead:
            raise Repeated
        used = frame.used | {value_of(item)}
        return self._top(index=frame.index + 1, begin=-1, used=used, dead=dead, before=None, walks={})

    @property
    def is_dead(self) -> bool:
        """Whether an item at hand begins so that it can only become one that is there already."""
        begun = ((frame.dead, self.text[frame.begin :]) for frame in self.frames if frame.begin >= 0)
        return any(item.startswith(text) for dead, item in begun for text in dead)

    def barred(self) -> Iterable[bytes]:
        """What must not come next."""
        for frame in self.frames:
            begun = self.text[frame.begin :] if frame.begin >= 0 else b""
            yield from (text[len(begun) :] for text in frame.dead if text.startswith(begun))


def dead_after(frame: Frame, item: bytes) -> Dead:
    """The dead beginnings once an item has ended."""
    if frame.before is None:
        return _dead_after(frame, item)
    if item not in frame.walks:
        frame.walks[item] = _dead_after(frame, item)
    return frame.walks[item]


def _dead_after(frame: Frame, item: bytes) -> Dead:
    dead = {*frame.dead}
    for text in ZEROS if item in ZEROS else (item,):
        has_end = text[-1:] in b'"]}'
        dead |= {text} if has_end else {text + end for end in BEHIND_SCALARS}
        length = len(text) - has_end
        while frame.before is not None and length >= 0 and _is_dead(frame.before, text[:length], dead, item):
            dead = {other for other in dead if not other.startswith(text[:length])} | {text[:length]}
            length -= 1
    return tuple(sorted(dead))


def _is_dead(before: Before, begun: bytes, dead: set[bytes], item: bytes) -> bool:
    """Whether all that may come behind the beginning of an item leads to what is dead; what is no beginning of the item
    that was written may be one that can't come at all."""
    state = before.state.fork()
    try:
        for token in _spelled(state.vocabulary, before.head + begun):
            state.advance(token)
    except ValueError:
        return not item.startswith(begun)
    barred = [text[len(begun) :] for text in dead if text.startswith(begun)]
    if not begun:
        barred.append(b"]")  # which stands where the first item may, and behind no comma
    return not (state.mask() & ~state.vocabulary.extending(*barred)).any()


def _spelled(vocabulary: Vocabulary, text: bytes) -> list[int]:
    """Tokens for some bytes, each of one byte where there are such."""
    singles = [vocabulary.by_bytes.get(bytes([byte])) for byte in text]
    return vocabulary.spell(text) if None in singles else [tokens[0] for tokens in singles if tokens]


def value_of(text: bytes) -> Hashable:
    """A JSON value by which equal ones are equal, however they are written; `1` and `true` aren't."""
    return _frozen(json.loads(text, parse_int=_decimal, parse_float=_decimal))


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of twenty digits
        return Decimal(float(text))


def _frozen(value: Any) -> Hashable:
    match value:
        case dict():
            return frozenset((key, _frozen(item)) for key, item in value.items())
        case list():
            return tuple(map(_frozen, value))
        case bool():
            return "true" if value else "false", None
    return (value,)
