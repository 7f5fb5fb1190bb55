"""From Python annotations to kinds of answers."""

import collections.abc
import enum
import json
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, ForwardRef, Literal, NoReturn

from promptlang.api import marks
from promptlang.api.classes import has_fields, is_model, parts_of
from promptlang.api.errors import AnnotationError
from promptlang.api.kinds import (
    DictKind,
    Kind,
    ListKind,
    MadeKind,
    MemberKind,
    PlainKind,
    RecordKind,
    RecursiveKind,
    SchemaKind,
    UnionKind,
)
from promptlang.api.limits import limited, limits_of
from promptlang.api.records import RecordClass
from promptlang.checker.names import MOST_PARTS
from promptlang.grammar import shapes
from promptlang.values.conversion import from_json
from promptlang.values.types import can_end
from promptlang.values.values import render_json

_SCALARS: Mapping[Any, shapes.Shape] = {
    str: shapes.Str(),
    int: shapes.Int(),
    float: shapes.Float(),
    bool: shapes.Bool(),
    None: shapes.Null(),
    type(None): shapes.Null(),
    Any: shapes.AnyJson(),
    object: shapes.AnyJson(),
}
_LISTS = {list, collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection}
_DICTS = {dict, collections.abc.Mapping}
_UNIONS = {typing.Union, types.UnionType}
_WRAPPERS = {"Final", "Required", "NotRequired", "ReadOnly"}
"""What says something about a field, and nothing about its type."""

_INSTEAD = {
    set: "write list[...]",
    frozenset: "write list[...]",
    bytes: "write str",
    complex: "write float",
    tuple: "write tuple[X, ...] for a list, or a NamedTuple",
}


class Reader:
    """Reads one annotation."""

    def __init__(self) -> None:
        self._open: dict[Any, str] = {}
        """The classes around this place, with the names of their records."""

        self._names: dict[str, Any] = {}
        self._parts = 0

    def kind(self, annotation: Any) -> Kind:
        """What an annotation means.

        Raises:
            AnnotationError: it is no type of an answer.
        """
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise AnnotationError(f"{shown(annotation)} has too many parts, more than {MOST_PARTS}: split it")
        try:
            if annotation in _SCALARS:
                return PlainKind(_SCALARS[annotation])
        except TypeError:
            pass  # not hashable, and so none of these
        if isinstance(annotation, type) and typing.get_origin(annotation) is None:
            return self._class(annotation)
        return self._form(annotation)

    def _form(self, annotation: Any) -> Kind:
        origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
        if origin is typing.Annotated:
            return self._marked(annotation, arguments[0], arguments[1:])
        if origin is Literal:
            return _union([_constant(value, annotation) for value in arguments])
        if origin in _UNIONS:
            return _union([self.kind(option) for option in arguments])
        if origin is tuple and len(arguments) == 2 and arguments[1] is Ellipsis:
            return self._list(arguments[0], tuple)
        if origin in _LISTS:
            return self._list(arguments[0] if arguments else Any, list)
        if origin in _DICTS:
            return self._dict(annotation, *(arguments or (str, Any)))
        if getattr(origin, "_name", None) in _WRAPPERS:
            return self.kind(arguments[0])
        if hasattr(annotation, "__supertype__"):
            return self.kind(annotation.__supertype__)
        if hasattr(annotation, "__value__") and not arguments:
            return self._alias(annotation)
        _refuse(annotation)

    def _class(self, cls: type) -> Kind:
        if cls in _LISTS:
            return self._list(Any, list)
        if cls in _DICTS:
            return self._dict(cls, str, Any)
        if issubclass(cls, enum.Enum):
            return _enum(cls)
        if isinstance(cls, RecordClass):
            return _declared(cls)
        if is_model(cls):
            return self._model(cls)
        if has_fields(cls):
            return self._record(cls)
        _refuse(cls)

    def _list(self, item: Any, make: Callable[[list[Any]], Any]) -> Kind:
        inner = self.kind(item)
        return ListKind(shapes.List(inner.shape), inner, make)

    def _dict(self, annotation: Any, key: Any, item: Any) -> Kind:
        if key is not str:
            raise AnnotationError(f"{shown(annotation)} has keys that aren't str: write dict[str, ...]")
        inner = self.kind(item)
        return DictKind(shapes.Dict(inner.shape), inner)

    def _alias(self, alias: Any) -> Kind:
        """What `type X = ...` stands for."""
        if alias in self._open:
            raise AnnotationError(f"the type {alias.__name__} is made of itself; only a class can contain itself")
        self._open[alias] = ""
        try:
            return self.kind(alias.__value__)
        finally:
            del self._open[alias]

    def _record(self, cls: type) -> RecordKind | RecursiveKind:
        if cls in self._open:
            return RecursiveKind(shapes.Recursive(self._open[cls]))
        self._open[cls] = name = self._name(cls)
        try:
            parts = parts_of(cls, {inner.__name__: inner for inner in self._open})
            kinds = {part.name: self.kind(part.annotation) for part in parts.fields}
        finally:
            del self._open[cls]
        fields = tuple(shapes.Field(part.name, kinds[part.name].shape, part.required) for part in parts.fields)
        shape = shapes.Record(name, fields)
        if not self._open and not can_end(shape):
            raise AnnotationError(
                f"no text can hold a whole {name}: it always contains another; make the inner one `| None`, or a list"
            )
        return RecordKind(shape, kinds, parts.make)

    def _model(self, cls: Any) -> Kind:
        """A pydantic model; one with types that are pydantic's own is described by its JSON Schema."""
        try:
            record = self._record(cls)
        except AnnotationError:
            return MadeKind(shapes.Schema(json.dumps(cls.model_json_schema(), separators=(",", ":"))), _maker(cls))
        return record if isinstance(record, RecursiveKind) else MadeKind(record.shape, _maker(cls))

    def _name(self, cls: type) -> str:
        """The name of a class's record: its own, with a number where another class has that."""
        name, number = cls.__name__, 1
        while self._names.setdefault(name, cls) is not cls:
            number += 1
            name = f"{cls.__name__}{number}"
        return name

    def _marked(self, annotation: Any, inner: Any, metadata: tuple[Any, ...]) -> Kind:
        kind = self.kind(inner)
        for mark in metadata:
            match mark:
                case marks.Schema(text=text):
                    kind = SchemaKind(shapes.Schema(text), kind)
                case marks.Grammar(text=text):
                    if kind.shape != shapes.Str():
                        raise AnnotationError(
                            f"{shown(annotation)}: a Grammar describes text: write Annotated[str, ...]"
                        )
                    kind = PlainKind(shapes.ContextFree(text))
        return _reshaped(kind, limited(kind.shape, limits_of(metadata), shown(annotation)))


def shown(annotation: Any) -> str:
    """An annotation as messages show it."""
    return annotation.__qualname__ if isinstance(annotation, type) else repr(annotation).replace("typing.", "")


def _maker(model: Any) -> Callable[[Any], Any]:
    """Makes and validates objects of a pydantic model."""
    # As JSON, for that is what the model wrote: strict models take it, too.
    return lambda data: model.model_validate_json(render_json(data))


def _declared(cls: RecordClass) -> Kind:
    """A record that a file declares."""
    shape, records = cls.__record__.shape, cls.__records__
    return MadeKind(shape, lambda data: records.object(from_json(shape, data)))


def _union(kinds: list[Kind]) -> Kind:
    if len(kinds) == 1:
        return kinds[0]
    return UnionKind(shapes.Union(tuple(kind.shape for kind in kinds)), tuple(kinds))


def _constant(value: Any, annotation: Any) -> Kind:
    """One value of a Literal, or of an enum."""
    if value is None:
        return PlainKind(shapes.Null())
    if isinstance(value, enum.Enum):
        return MemberKind(_constant(value.value, annotation).shape, value)
    if not isinstance(value, str | int | float):
        raise AnnotationError(f"{shown(annotation)} holds {value!r}: only str, int, float and bool can be written")
    return PlainKind(shapes.Constant(value))


def _enum(cls: type[enum.Enum]) -> Kind:
    if issubclass(cls, enum.Flag):
        raise AnnotationError(f"{shown(cls)} is a Flag, which holds several at once: write list[...] of an Enum")
    if not list(cls):
        raise AnnotationError(f"{shown(cls)} has no members")
    return _union([_constant(member, cls) for member in cls])


def _reshaped(kind: Any, shape: Any) -> Kind:
    """A kind with a narrower shape."""
    if shape == kind.shape:
        return kind  # type: ignore[no-any-return]
    if isinstance(kind, UnionKind):
        return replace(kind, shape=shape, options=tuple(map(_reshaped, kind.options, shape.options)))
    return replace(kind, shape=shape)  # type: ignore[no-any-return]


def _refuse(annotation: Any) -> NoReturn:
    origin = typing.get_origin(annotation) or annotation
    if isinstance(annotation, str | ForwardRef):
        name = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        raise AnnotationError(f"the name {name!r} is not known here: write the type itself, without quotes")
    if isinstance(annotation, typing.TypeVar):
        raise AnnotationError(f"{annotation} stands for no type: a generic class can't be an answer, write one without")
    if isinstance(origin, type) and origin is not annotation and has_fields(origin):
        raise AnnotationError(f"{shown(annotation)} is generic: write a class with its fields spelled out")
    instead = _INSTEAD.get(origin, "write str, int, float, bool, a Literal, list, dict, an Enum or a dataclass")
    raise AnnotationError(f"{shown(annotation)} is no type of an answer: {instead}")
