"""Python objects as JSON data: what programs take as arguments."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any

from promptlang.api.branch_result import BranchResult
from promptlang.api.classes import is_model
from promptlang.values.values import Answered, Parts

JSON_NAME = "promptlang.name"
"""Where the metadata of a field say what it is called in JSON."""


def to_data(value: Any) -> Any:
    """An object as JSON data.

    Args:
        value: JSON data, tuples, members of enums, dataclasses, named tuples, pydantic models, values of the language.

    Raises:
        TypeError: a part of it is none of these; `str()` says which.
    """
    match value:
        case enum.Enum():
            return to_data(value.value)
        case BranchResult():
            return value.to_dict()
        case Parts():
            return to_data(value.plain())
        case Answered():
            return value.plain()
        case None | str() | int() | float():
            return value
        case Mapping():
            return {_key(key): to_data(item) for key, item in value.items()}
        case tuple() if hasattr(value, "_fields"):
            return {name: to_data(getattr(value, name)) for name in value._fields}
        case list() | tuple():
            return [to_data(item) for item in value]
    return _object_data(value)


def _object_data(value: Any) -> Any:
    if isinstance(value, type):
        raise TypeError(f"the class {value.__qualname__} is no data: give an object of it")
    if is_model(type(value)):
        return value.model_dump(mode="json", by_alias=True)
    if dataclasses.is_dataclass(value):
        fields = [field for field in dataclasses.fields(value) if field.init]
        return {field.metadata.get(JSON_NAME, field.name): to_data(getattr(value, field.name)) for field in fields}
    raise TypeError(
        f"a {type(value).__qualname__} is no data: give str, int, float, bool, None, a list, a dict, an enum's member, "
        "a dataclass or a pydantic model"
    )


def _key(key: Any) -> str:
    if isinstance(key, enum.Enum):
        key = key.value
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} of a dict is no str")
    return str(key)
