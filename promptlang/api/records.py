"""A file's records as Python classes, and what its programs give as objects."""

import copy
import copyreg
import dataclasses
import keyword
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any
from weakref import WeakValueDictionary

from promptlang.api.branch_result import BranchResult
from promptlang.api.data import JSON_NAME, to_data
from promptlang.api.python_types import python_type
from promptlang.grammar import shapes
from promptlang.interpreter.branches import BranchValue
from promptlang.session.program_file import ProgramFile
from promptlang.values.conversion import to_json
from promptlang.values.values import Answered, RecordType, RecordValue, Value, render_json


class RecordClass(type):
    """The type of classes that are made from records; it lets them be pickled, though no module holds them."""

    __record__: RecordType
    __records__: "Records"


class Record(metaclass=RecordClass):
    """An object of a record that a `.pl` file declares: a frozen data class with the record's fields."""

    def to_dict(self) -> dict[str, Any]:
        """Its fields as JSON data, by the names the file gives them."""
        return to_data(self)  # type: ignore[no-any-return]


class Records:
    """The records of a file as classes; `records_of` makes one.

    Args:
        declared: the file's own, in order.
        imported: those of the files it imports, by the name of the import.
    """

    def __init__(self, declared: tuple[RecordType, ...], imported: "tuple[tuple[str, Records], ...]") -> None:
        self._declared = declared
        self._imported = imported
        self._classes: dict[str, RecordClass] = {}
        for record in declared:
            self._classes[record.shape.name] = _new_class(record, self)

    def __reduce__(self) -> "tuple[Any, tuple[Any, ...]]":
        return _kept, (self._declared, self._imported)

    @property
    def classes(self) -> dict[str, RecordClass]:
        """All classes, by the names that the file calls them (`Reply`, `library.Reply`)."""
        inner = {f"{name}.{own}": cls for name, records in self._imported for own, cls in records.classes.items()}
        return self._classes | inner

    def object(self, value: Value) -> Any:
        """What a program gives, as Python has it: records as objects of their classes, branches as `BranchResult`,
        texts and numbers plain."""
        match value:
            case Answered():
                return value.plain()
            case BranchValue():
                return self._branch(value)
            case RecordValue(name=name, fields=fields):
                made = {key: self.object(item) for key, item in fields.items()}
                return self._class(name, tuple(fields))(**_as_attributes(made))
            case list():
                return [self.object(item) for item in value]
            case dict():
                return {key: self.object(item) for key, item in value.items()}
        return value

    def _branch(self, branch: BranchValue) -> BranchResult:
        parts = {name: branch.part(name) for name in branch.part_names() if name not in branch.fields}
        told = {"logprob": None, **parts, "index": branch.index}
        return BranchResult(
            told, {name: self.object(value) for name, value in branch.fields.items()}, to_json(branch.plain())
        )

    def _class(self, name: str, fields: tuple[str, ...]) -> RecordClass:
        """The class of a record; the arms of a fork are a record that no file declares."""
        found = next((cls for cls in self._named(name) if _field_names(cls.__record__.shape) == fields), None)
        if found is None:
            undeclared = shapes.Record(name, tuple(shapes.Field(field, shapes.AnyJson()) for field in fields))
            found = _kept((RecordType(undeclared),), ()).classes[name]
        return found

    def _named(self, name: str) -> Iterator[RecordClass]:
        if name in self._classes:
            yield self._classes[name]
        for _, records in self._imported:
            yield from records._named(name)


def records_of(constants: Mapping[str, Value]) -> Records:
    """The records that a file declares or imports; the same ones for the same text.

    Args:
        constants: what its names mean, as a `Graph` has them.
    """
    declared = tuple(value for value in constants.values() if isinstance(value, RecordType))
    imported = tuple(
        (name, records_of(value.fields))
        for name, value in constants.items()
        if isinstance(value, RecordValue) and _is_import(name, value)
    )
    return _kept(declared, imported)


def to_python(file: ProgramFile, value: Value) -> Any:
    """What a program of a file gives, as `Records.object` says."""
    return file_records(file).object(value)


def file_records(file: ProgramFile) -> Records:
    """The records of a file that has programs, and no errors."""
    return records_of(file.checked.programs[file.names[0]].constants)


_KNOWN: "WeakValueDictionary[tuple[Any, ...], Records]" = WeakValueDictionary()


def _kept(declared: tuple[RecordType, ...], imported: tuple[tuple[str, Records], ...]) -> Records:
    written = tuple((record.shape, render_json(dict(record.defaults))) for record in declared)
    key = (written, imported)
    known = _KNOWN.get(key)
    return _KNOWN.setdefault(key, Records(declared, imported)) if known is None else known


def _is_import(name: str, value: RecordValue) -> bool:
    """Whether a constant is a file that is imported: its value goes by the name of the import."""
    return value.name == name


def _field_names(shape: shapes.Record) -> tuple[str, ...]:
    return tuple(field.name for field in shape.fields)


def _new_class(record: RecordType, records: Records) -> RecordClass:
    attributes = _attributes(_field_names(record.shape))
    fields: list[tuple[str, Any, Any]] = []
    for part in record.shape.fields:
        after_default = any(earlier.name in record.defaults for earlier in record.shape.fields[: len(fields)])
        settings: dict[str, Any] = {"metadata": {JSON_NAME: part.name}}
        if part.name in record.defaults:
            settings |= _default(records.object(record.defaults[part.name]))
        elif after_default:
            settings["kw_only"] = True
        fields.append((attributes[part.name], python_type(part.shape), field(**settings)))
    cls: Any = dataclasses.make_dataclass(
        record.shape.name, fields, bases=(Record,), namespace={"__module__": __name__}, frozen=True
    )
    cls.__record__, cls.__records__ = record, records
    return cls  # type: ignore[no-any-return]


def _default(value: Any) -> dict[str, Any]:
    if isinstance(value, list | dict):
        return {"default_factory": lambda: copy.deepcopy(value)}
    return {"default": value}


def _attributes(names: tuple[str, ...]) -> dict[str, str]:
    """The attribute of each field: its name, with an underscore where Python needs that name."""
    attributes = {}
    for name in names:
        attribute = name
        while keyword.iskeyword(attribute) or attribute in dir(Record) or (attribute != name and attribute in names):
            attribute += "_"
        attributes[name] = attribute
    return attributes


def _as_attributes(values: Mapping[str, Any]) -> dict[str, Any]:
    attributes = _attributes(tuple(values))
    return {attributes[name]: value for name, value in values.items()}


def _class_named(records: Records, name: str) -> RecordClass:
    return records.classes[name]


copyreg.pickle(RecordClass, lambda cls: (_class_named, (cls.__records__, cls.__record__.shape.name)))
