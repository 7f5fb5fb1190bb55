"""Kinds of answers: each has a shape, and makes Python objects of data that has the shape."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from promptlang.grammar import shapes
from promptlang.grammar.reader import validate
from promptlang.grammar.shapes import Shape


class Kind(ABC):
    """What an annotation means.

    Attributes:
        shape: what answers look like.
    """

    shape: Shape

    @abstractmethod
    def value(self, data: Any, enclosing: "Enclosing") -> Any:
        """An object of the annotated type.

        Args:
            data: JSON data of the shape.
            enclosing: kinds of the records around this place, by name.
        """


Enclosing: TypeAlias = "Mapping[str, RecordKind]"


@dataclass(frozen=True, eq=False)
class PlainKind(Kind):
    """Data stands for itself."""

    shape: Shape

    def value(self, data: Any, enclosing: Enclosing) -> Any:
        return data


@dataclass(frozen=True, eq=False)
class MemberKind(Kind):
    """A member of an enum, written as its value."""

    shape: Shape
    member: Any

    def value(self, data: Any, enclosing: Enclosing) -> Any:
        return self.member


@dataclass(frozen=True, eq=False)
class UnionKind(Kind):
    """The first option that the data fits, as the reader of answers decides it."""

    shape: shapes.Union
    options: tuple[Kind, ...]

    def value(self, data: Any, enclosing: Enclosing) -> Any:
        records = {name: kind.shape for name, kind in enclosing.items()}
        option = next(option for option in self.options if _fits(option.shape, data, records))
        return option.value(data, enclosing)


@dataclass(frozen=True, eq=False)
class ListKind(Kind):
    """A list; `make` turns it into the annotated type."""

    shape: shapes.List
    item: Kind
    make: Callable[[list[Any]], Any]

    def value(self, data: Any, enclosing: Enclosing) -> Any:
        return self.make([self.item.value(item, enclosing) for item in data])


@dataclass(frozen=True, eq=False)
class DictKind(Kind):
    """A dict with string keys."""

    shape: shapes.Dict
    item: Kind

    def value(self, data: Any, enclosing: Enclosing) -> Any:
        return {key: self.item.value(item, enclosing) for key, item in data.items()}


@dataclass(frozen=True, eq=False)
class RecordKind(Kind):
    """A class with named fields.

    Attributes:
        fields: the kind of each, by the name it has in JSON.
        make: takes the values of the fields that are there, by these names.
    """

    shape: shapes.Record
    fields: Mapping[str, Kind]
    make: Callable[[dict[str, Any]], Any]

    def value(self, data: Any, enclosing: Enclosing) -> Any:
        inside = {**enclosing, self.shape.name: self}
        return self.make({name: self.fields[name].value(item, inside) for name, item in data.items()})


@dataclass(frozen=True, eq=False)
class RecursiveKind(Kind):
    """A use of a record inside its own fields."""

    shape: shapes.Recursive

    def value(self, data: Any, enclosing: Enclosing) -> Any:
        return enclosing[self.shape.name].value(data, enclosing)


@dataclass(frozen=True, eq=False)
class MadeKind(Kind):
    """A class that makes objects of whole data, inner objects too.

    Attributes:
        make: takes JSON data of the shape.
    """

    shape: Shape
    make: Callable[[Any], Any]

    def value(self, data: Any, enclosing: Enclosing) -> Any:
        return self.make(data)


@dataclass(frozen=True, eq=False)
class SchemaKind(Kind):
    """Data of a JSON Schema, as an object of the annotated type where it fits that."""

    shape: shapes.Schema
    inner: Kind

    def value(self, data: Any, enclosing: Enclosing) -> Any:
        validate(self.inner.shape, data, {name: kind.shape for name, kind in enclosing.items()})
        return self.inner.value(data, enclosing)


def _fits(shape: Shape, data: Any, enclosing: Mapping[str, shapes.Record]) -> bool:
    try:
        validate(shape, data, enclosing)
    except ValueError:
        return False
    return True
