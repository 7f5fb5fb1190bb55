"""What classes with named fields are made of: dataclasses, TypedDict, NamedTuple, pydantic models.

pydantic is never imported: a model brings it along.
"""

import dataclasses
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from promptlang.api.errors import AnnotationError


@dataclass(frozen=True)
class ClassField:
    """A field of a class.

    Attributes:
        name: in JSON.
        annotation: its type.
        required: whether answers always have it.
    """

    name: str
    annotation: Any
    required: bool = True


@dataclass(frozen=True)
class ClassParts:
    """What a class is made of.

    Attributes:
        fields: in order.
        make: an object of it from the values of the fields that are there.
    """

    fields: tuple[ClassField, ...]
    make: Callable[[dict[str, Any]], Any]


def is_model(cls: Any) -> bool:
    """Whether a class is a pydantic model."""
    return isinstance(cls, type) and hasattr(cls, "model_fields") and hasattr(cls, "model_validate_json")


def has_fields(cls: type) -> bool:
    """Whether a class has named fields that are known before it has objects."""
    return dataclasses.is_dataclass(cls) or _is_typed_dict(cls) or _is_named_tuple(cls) or is_model(cls)


def parts_of(cls: Any, around: Mapping[str, type]) -> ClassParts:
    """The fields of a class.

    Args:
        cls: `has_fields`.
        around: classes by name, for references that the class's module can't resolve.

    A field with a default is written by the model like any other, as one of a record in a `.pl` file is; only what a
    TypedDict calls `NotRequired` may be left out.

    Raises:
        AnnotationError: a name in it means nothing, or its objects need more than its fields.
    """
    if is_model(cls):
        return ClassParts(tuple(_model_field(name, field) for name, field in cls.model_fields.items()), cls)
    hints = _hints(cls, around)
    if _is_typed_dict(cls):
        fields = tuple(ClassField(name, hint, _is_required(cls, name, hint)) for name, hint in hints.items())
        return ClassParts(fields, dict)
    if _is_named_tuple(cls):
        names = [name for name in cls._fields if name in hints]
    else:
        names = [field.name for field in dataclasses.fields(cls) if field.init]
        _refuse_more(cls)
    return ClassParts(tuple(ClassField(name, hints[name]) for name in names), lambda values: cls(**values))


def _is_typed_dict(cls: type) -> bool:
    return issubclass(cls, dict) and hasattr(cls, "__required_keys__")


def _is_named_tuple(cls: type) -> bool:
    return issubclass(cls, tuple) and hasattr(cls, "_fields") and hasattr(cls, "__annotations__")


def _hints(cls: type, around: Mapping[str, type]) -> dict[str, Any]:
    try:
        return typing.get_type_hints(cls, include_extras=True)
    except NameError:
        pass  # a class inside a function may mean itself, which its module doesn't know
    try:
        return typing.get_type_hints(cls, localns=dict(around), include_extras=True)
    except NameError as error:
        raise AnnotationError(
            f"{cls.__qualname__} names a type that its module doesn't know: {error}; declare that type at the top of "
            "the module, or write it without quotes"
        ) from error


def _is_required(cls: Any, name: str, hint: Any) -> bool:
    """Whether a TypedDict always has a key; `__required_keys__` is wrong where annotations are strings."""
    origin = typing.get_origin(hint)
    if origin in (typing.Required, typing.NotRequired):
        return origin is typing.Required
    return name in cls.__required_keys__


def _refuse_more(cls: Any) -> None:
    """Refuse a dataclass that can't be made from its fields alone."""
    for pseudo in cls.__dataclass_fields__.values():
        is_init_var = pseudo.name not in {field.name for field in dataclasses.fields(cls)} and isinstance(
            pseudo.type, dataclasses.InitVar
        )
        if is_init_var and pseudo.default is dataclasses.MISSING:
            raise AnnotationError(
                f"{cls.__qualname__} can't be made from its fields: it needs {pseudo.name!r}; give that a default"
            )


def _model_field(name: str, field: Any) -> ClassField:
    """A field of a pydantic model; its validators run when the model is made."""
    alias = field.validation_alias if field.validation_alias is not None else name
    if not isinstance(alias, str):
        raise AnnotationError(f"the field {name!r} has an alias with a path")
    metadata = [mark for mark in field.metadata if not callable(getattr(mark, "func", None))]
    annotation = Annotated[(field.annotation, *metadata)] if metadata else field.annotation
    return ClassField(alias, annotation)
