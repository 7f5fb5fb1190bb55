"""Types of answers: what `gen` is asked for in Python, and what it gives."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar, cast

from typing_extensions import TypeForm

from promptlang.api.annotations import Reader, shown
from promptlang.api.errors import AnnotationError
from promptlang.api.kinds import Kind
from promptlang.grammar.checking import check_shape
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.shapes import Shape
from promptlang.values.conversion import to_json
from promptlang.values.values import Value

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class AnswerType(Generic[T]):
    """What an annotation asks for.

    Attributes:
        shape: what answers look like.
    """

    shape: Shape
    _kind: Kind

    def value(self, value: Value) -> T:
        """A value of the shape, as the language has it, as an object of the annotated type.

        Raises:
            ValueError: the annotated class refuses it (pydantic's validators, `__post_init__`).
        """
        return cast(T, self._kind.value(to_json(value), {}))


def answer_type(annotation: TypeForm[T]) -> AnswerType[T]:
    """What a Python annotation asks for; the same object for the same annotation.

    Args:
        annotation: `str`, `int`, `float`, `bool`, `None`, `Any`, `Literal`, unions, `list`, `dict[str, ...]`,
            `tuple[X, ...]`, enums, dataclasses, TypedDict, NamedTuple, pydantic models, `NewType`, `type` aliases, and
            `Annotated` with marks of promptlang's, annotated_types' and pydantic's `Field`.

    Raises:
        AnnotationError: no answer can have it, or be held to it.
    """
    return _kept(annotation) if _is_hashable(annotation) else _read(annotation)


def _is_hashable(annotation: object) -> bool:
    try:
        hash(annotation)
    except TypeError:  # marks of others may hold lists
        return False
    return True


def _kept(annotation: Any) -> AnswerType[Any]:
    return _kept_as_written(annotation, repr(annotation))  # `int | str` equals `str | int`, but the first match counts


@lru_cache(maxsize=1024)
def _kept_as_written(annotation: Any, written: str) -> AnswerType[Any]:
    return _read(annotation)


def _read(annotation: Any) -> AnswerType[Any]:
    try:
        kind = Reader().kind(annotation)
    except RecursionError:
        raise AnnotationError(f"{shown(annotation)} nests too deeply") from None
    try:
        check_shape(kind.shape)
    except ConstraintError as error:
        raise AnnotationError(f"{shown(annotation)}: {error}") from error
    return AnswerType(kind.shape, kind)
