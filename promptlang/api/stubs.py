"""Stubs: what type checkers are told of a file's programs and records. No code runs in them.

Each is a `Program` of what it takes and gives, so that all that can be done with a program has types; records are the
classes that results have.
"""

import dataclasses
import hashlib
import itertools
import keyword
import re
from collections.abc import Iterator
from pathlib import Path

from promptlang.api.python_types import python_type
from promptlang.api.records import RecordClass, file_records
from promptlang.checker.tables import ProgramInfo
from promptlang.grammar import shapes
from promptlang.session.program_file import ProgramFile

_PROGRAM = """\
_P = _typing.ParamSpec("_P")
_R = _typing.TypeVar("_R")

def _program(function: _typing.Callable[_P, _R]) -> _promptlang.Program[_P, _R]: ...
"""
_WIDTH = 100
_DIGEST = re.compile(r"^# Digest: (\w+)$", re.MULTILINE)


def stub(file: ProgramFile) -> str:
    """The stub of a file that has programs, and no errors.

    Its head has a digest of the rest, so that a change of what a program takes or gives is told from a change of its
    texts, and from a stub that was laid out anew.
    """
    body = _body(file)
    name = Path(file.name).name
    head = f"{_mark(file)} for type checkers alone: `promptlang stubs {name}` writes them.\n"
    return f"{head}# Digest: {_digest(body)}\n\n{body}"


def is_stub(file: ProgramFile, text: str) -> bool:
    """Whether a text was written as a stub of the file."""
    return text.startswith(_mark(file))


def _mark(file: ProgramFile) -> str:
    return f"# Types of {Path(file.name).name},"


def is_current(file: ProgramFile, text: str) -> bool:
    """Whether a stub says what the file says now."""
    found = _DIGEST.search(text)
    return found is not None and found[1] == _digest(_body(file))


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()[:16]


def _body(file: ProgramFile) -> str:
    names = _Names(file)
    classes = [_class(cls, name, names) for name, cls in names.classes.items()]
    programs = [file.checked.programs[name] for name in file.names if not keyword.iskeyword(name)]
    parts = [*classes, _PROGRAM, *(_program(info, names) for info in programs)]
    return "\n".join([_imports("".join(parts)), *parts])


def _imports(body: str) -> str:
    """What the body needs."""
    words = ", ".join(word for word in ("Any", "Literal") if re.search(rf"\b{word}\b", body))
    lines = [
        "import dataclasses as _dataclasses\n" if "_dataclasses." in body else "",
        "import typing as _typing\n",
        f"from typing import {words}\n" if words else "",
        "\nimport promptlang as _promptlang\n",
        "from promptlang.api.records import Record as _Record\n" if "(_Record)" in body else "",
    ]
    return "".join(lines)


class _Names:
    """What the classes of a file's records are called in its stub.

    Attributes:
        classes: by these names; a record of an imported file keeps its own name where that is free.
    """

    def __init__(self, file: ProgramFile) -> None:
        self.classes: dict[str, RecordClass] = {}
        taken = {*file.names}
        for name, cls in file_records(file).classes.items():
            own = name.rpartition(".")[2]
            self.classes[name.replace(".", "_") if own in self.classes or own in taken else own] = cls

    def of(self, record: shapes.Record | shapes.Recursive) -> str:
        """What a record's class is called."""
        named = {name: cls.__record__.shape for name, cls in self.classes.items() if cls.__name__ == record.name}
        if isinstance(record, shapes.Record):
            fields = [field.name for field in record.fields]
            same = [name for name, shape in named.items() if [field.name for field in shape.fields] == fields]
            return (same or list(named))[0]
        return next(iter(named))


def _class(cls: RecordClass, name: str, names: _Names) -> str:
    def called(record: shapes.Record | shapes.Recursive) -> str:
        is_itself = isinstance(record, shapes.Recursive) and record.name == cls.__name__
        return name if is_itself else names.of(record)

    fields = dataclasses.fields(cls)  # type: ignore[arg-type]
    lines = [f"@_dataclasses.dataclass(frozen=True)\nclass {name}(_Record):"]
    for field, part in zip(fields, cls.__record__.shape.fields, strict=True):
        has_default = part.name in cls.__record__.defaults
        default = " = ..." if has_default else " = _dataclasses.field(kw_only=True)" if field.kw_only else ""
        lines.append(f"    {field.name}: {python_type(part.shape, called)}{default}")
    return "\n".join(lines if fields else [*lines, "    pass"]) + "\n"


def _program(info: ProgramInfo, names: _Names) -> str:
    result = "Any" if info.returns is None else python_type(info.returns, names.of)
    parameters = list(_parameters(info, names))
    listed = ", ".join(parameters)
    if len(listed) > _WIDTH - len(info.name) - len(result):
        listed = "".join(f"\n    {parameter}," for parameter in parameters) + "\n"
    doc = info.declaration.doc
    body = " ..." if doc is None else f"\n    {doc!r}"
    return f"@_program\ndef {info.name}({listed}) -> {result}:{body}\n"


def _parameters(info: ProgramInfo, names: _Names) -> Iterator[str]:
    parameters = info.declaration.parameters
    nameable = [parameter for parameter in parameters if not keyword.iskeyword(parameter.name)]
    positional = list(itertools.takewhile(lambda parameter: parameter.default is None, nameable))
    positional += itertools.takewhile(lambda parameter: parameter.default is not None, nameable[len(positional) :])
    for index, parameter in enumerate(nameable):
        if index == len(positional):
            yield "*"  # Python has no place for one that is needed behind one that is not
        default = "" if parameter.default is None else " = ..."
        yield f"{parameter.name}: {python_type(info.shapes[parameter.name], names.of)}{default}"
    if len(nameable) < len(parameters):
        yield "**_others: Any"
