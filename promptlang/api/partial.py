"""Typed partial values: an answer of a type while its text grows.

The text is read once, piece by piece, by a parser that is never set back: the work is linear in the text, however
small its pieces. What is shown is a live view, which grows with it. Text grows piece by piece; numbers and literals are
there only when they are whole.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

from promptlang.grammar import shapes
from promptlang.grammar.reader import read
from promptlang.grammar.shapes import Shape
from promptlang.values.types import options_of, unfolded

State: TypeAlias = Literal["absent", "growing", "whole"]

_PLAIN = re.compile(r'[^"\\]+')
_SPACE = " \t\n\r"
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class _Value:
    """A value of JSON under way."""

    is_whole = False

    @property
    def shown(self) -> Any:
        """What users see; `ABSENT` where that is nothing yet."""
        return ABSENT

    @property
    def state(self) -> State:
        return "whole" if self.is_whole else "absent" if self.shown is ABSENT else "growing"


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Any = _Absent()
"""Stands for a value that is not there yet."""


class _Text(_Value):
    """A string; shown as it grows, or, where it is one of some literals, when it is whole."""

    def __init__(self, grows: bool) -> None:
        self._grows = grows
        self._pieces: list[str] = []

    def add(self, text: str) -> None:
        self._pieces.append(text)

    @property
    def text(self) -> str:
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0] if self._pieces else ""

    @property
    def shown(self) -> Any:
        return self.text if self._grows or self.is_whole else ABSENT


class _Scalar(_Value):
    """A number, a truth value or null."""

    def __init__(self, shape: Shape | None) -> None:
        self.text = ""
        self._is_float = isinstance(shape, shapes.Float)

    @property
    def shown(self) -> Any:
        if not self.is_whole:
            return ABSENT
        value = json.loads(self.text)
        return float(value) if self._is_float and isinstance(value, int) and not isinstance(value, bool) else value


class Partial(_Value, Mapping[str, Any]):
    """A record or an object as it grows: what is there of it, by name, as items and as attributes."""

    def __init__(self, shape: Shape | None) -> None:
        self.shape = shape
        self.parts: dict[str, _Value] = {}

    @property
    def shown(self) -> "Partial":
        return self

    def state_of(self, name: str) -> State:
        """Whether a part is `absent`, `growing` or `whole`."""
        return self.parts[name].state if name in self.parts else "absent"

    def __getitem__(self, name: str) -> Any:
        return self.parts[name].shown

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return self.parts[name].shown if name in self.parts else ABSENT

    def __iter__(self) -> Iterator[str]:
        return (name for name, part in self.parts.items() if part.shown is not ABSENT)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __repr__(self) -> str:
        return f"Partial({plain(self)!r})"


class PartialList(_Value, Sequence[Any]):
    """A list as it grows: the items that are there."""

    def __init__(self, shape: Shape | None) -> None:
        self.shape = shape
        self.items: list[_Value] = []

    @property
    def shown(self) -> "PartialList":
        return self

    def __len__(self) -> int:
        return len(self.items) - (bool(self.items) and self.items[-1].shown is ABSENT)

    def __getitem__(self, index: Any) -> Any:
        there = self.items[: len(self)][index]
        return [item.shown for item in there] if isinstance(index, slice) else there.shown

    def __repr__(self) -> str:
        return f"PartialList({plain(self)!r})"


def plain(value: Any) -> Any:
    """A view as plain data of its own, which does not grow."""
    if isinstance(value, Partial):
        return {name: plain(value[name]) for name in value}
    if isinstance(value, PartialList):
        return [plain(item) for item in value]
    return value


class Growing:
    """An answer that grows.

    Args:
        shape: what it will look like; None for any text.
    """

    def __init__(self, shape: Shape | None) -> None:
        self._shape = shape
        self._is_text = shape is None or isinstance(shape, shapes.Str | shapes.ContextFree)
        self._whole = _Text(self._is_text)
        self._parser: _Parser | None = None

    def feed(self, text: str) -> None:
        """Take the next piece of its text."""
        if self._parser is None and not self._is_text and not self._whole.text and text.lstrip()[:1] in ("{", "["):
            self._parser = _Parser(self._shape)
        if self._parser is not None:
            self._parser.feed(text)
        self._whole.add(text)

    def finish(self) -> None:
        """Its text is whole."""
        self._whole.is_whole = True

    @property
    def value(self) -> Any:
        """What there is of it: text, a `Partial`, a `PartialList`, a number or literal that is whole, or `ABSENT`."""
        if self._parser is not None:
            return self._parser.value
        if self._is_text:
            return self._whole.shown
        return read(self._shape, self._whole.text) if self._whole.is_whole and self._shape is not None else ABSENT

    @property
    def state(self) -> State:
        """Whether it is `absent`, `growing` or `whole`."""
        return "whole" if self._whole.is_whole else "absent" if self.value is ABSENT else "growing"


class _Parser:
    """Reads JSON piece by piece. The text is valid, for a mask has let it pass.

    Args:
        shape: of the value.
    """

    def __init__(self, shape: Shape | None) -> None:
        self._root: _Value | None = None
        self._shape = shape
        self._stack: list[Partial | PartialList] = []
        self._text: _Text | None = None
        self._scalar: _Scalar | None = None
        self._key: str | None = None
        self._escape = ""
        self._high = ""

    @property
    def value(self) -> Any:
        return ABSENT if self._root is None else self._root.shown

    def feed(self, text: str) -> None:
        """Read the next piece."""
        place = 0
        while place < len(text):
            place = self._in_text(text, place) if self._text is not None else self._outside(text[place], place)

    # Outside of strings ------------------------------------------------------------------------------------

    def _outside(self, char: str, place: int) -> int:
        if self._scalar is not None:
            if char not in ",]}" and char not in _SPACE:
                self._scalar.text += char
                return place + 1
            self._scalar.is_whole, self._scalar = True, None
        match char:
            case '"':
                self._begin_text()
            case "{" | "[":
                shape = self._next_shape()
                container: Partial | PartialList = Partial(shape) if char == "{" else PartialList(shape)
                self._put(container)
                self._stack.append(container)
            case "}" | "]":
                self._stack.pop().is_whole = True
            case "," | ":":
                pass
            case _ if char not in _SPACE:
                self._scalar = _Scalar(self._next_shape())
                self._scalar.text = char
                self._put(self._scalar)
        return place + 1

    def _begin_text(self) -> None:
        """A string is a name where an object waits for one, else a value."""
        top = self._stack[-1] if self._stack else None
        if isinstance(top, Partial) and self._key is None:
            self._text = _Text(grows=False)
            return
        self._text = _Text(_grows(self._next_shape()))
        self._put(self._text)

    def _put(self, value: _Value) -> None:
        top = self._stack[-1] if self._stack else None
        match top:
            case Partial():
                assert self._key is not None
                top.parts[self._key], self._key = value, None
            case PartialList():
                top.items.append(value)
            case None:
                self._root = value

    def _next_shape(self) -> Shape | None:
        """The shape of the value that begins here, where it is clear."""
        if not self._stack:
            return _only(self._shape)
        top = self._stack[-1]
        match top.shape:
            case shapes.Record(fields=fields) as record:
                found = next((field.shape for field in fields if field.name == self._key), None)
                return None if found is None else _only(unfolded(found, record))
            case shapes.List(item=item):
                return _only(item)
            case shapes.Dict(value=value):
                return _only(value)
        return None

    # In strings ----------------------------------------------------------------------------------------------

    def _in_text(self, text: str, place: int) -> int:
        assert self._text is not None
        if self._escape:
            self._escaped(text[place])
            return place + 1
        run = _PLAIN.match(text, place)
        if run is not None:
            self._add(run[0])
            return run.end()
        if text[place] == "\\":
            self._escape = "\\"
        else:
            self._end_text(self._text)
        return place + 1

    def _escaped(self, char: str) -> None:
        self._escape += char
        if self._escape[1] != "u":
            self._add(_ESCAPES.get(char, char))
            self._escape = ""
        elif len(self._escape) == 6:
            unit = chr(int(self._escape[2:], 16))
            self._escape = ""
            if "\ud800" <= unit <= "\udbff":
                self._high = unit  # shown with its other half
                return
            whole = (self._high + unit).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            self._high = ""
            self._add(whole)

    def _add(self, text: str) -> None:
        assert self._text is not None
        self._text.add(text)

    def _end_text(self, text: _Text) -> None:
        text.is_whole, self._text = True, None
        top = self._stack[-1] if self._stack else None
        if isinstance(top, Partial) and self._key is None and not any(text is part for part in _last(top)):
            self._key = text.text


def _last(record: Partial) -> list[_Value]:
    """The part of a record that was begun last."""
    return [next(reversed(record.parts.values()))] if record.parts else []


def _only(shape: Shape | None) -> Shape | None:
    """The one option of a union that is none, a union itself where there are several."""
    options = [] if shape is None else [one for one in options_of(shape) if not isinstance(one, shapes.Null)]
    return options[0] if len(options) == 1 else shape


def _grows(shape: Shape | None) -> bool:
    """Whether a string of this shape is shown before it is whole."""
    if isinstance(shape, shapes.Union):
        return all(map(_grows, shape.options))
    return not isinstance(shape, shapes.Constant | shapes.Pattern)
