"""What `select` chooses from in Python: options of any type, each with its text."""

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from promptlang.api.errors import OptionsError
from promptlang.values.values import render_text

T = TypeVar("T")


@dataclass(frozen=True)
class Options(Generic[T]):
    """Options, and what each is called.

    Attributes:
        values: in order.
        texts: of each, as the model sees it.
    """

    values: tuple[T, ...]
    texts: tuple[str, ...]

    def chosen(self, text: str) -> T:
        """The option with a text."""
        return self.values[self.texts.index(text)]


def options_of(options: Iterable[T]) -> Options[T]:
    """Options to select from.

    Args:
        options: an Enum class, or any of str, int, float, bool, None and members of enums. A member goes by its value
            where that is a str, else by its name.

    Raises:
        OptionsError: there are none, one is empty or there twice, or one has no text.
    """
    if isinstance(options, str):
        raise OptionsError(f"select needs a list of options, not the text {options!r}: write [{options!r}]")
    values = tuple(options)
    texts = tuple(_text(value) for value in values)
    if not values:
        raise OptionsError("select needs at least one option")
    for index, text in enumerate(texts):
        if not text:
            raise OptionsError("an option of select is empty: leave it out, or write a word for it")
        if text in texts[:index]:
            raise OptionsError(f"select has the option {text!r} twice")
    return Options(values, texts)


def _text(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return value.value if isinstance(value.value, str) else value.name
    if value is None or isinstance(value, str | int | float):
        return render_text(value)
    raise OptionsError(f"an option of select is a text, a number, true, false or none, not {value!r}")
