"""The functions and methods that expressions can call. They never change a value: each returns a new one."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from promptlang.values.values import Value, render_json, render_text, type_name

T = TypeVar("T")


class Work(Protocol):
    """What a function may ask of the evaluator that runs it."""

    def step(self, count: int = 1) -> None:
        """Use up steps; raises when there are none left."""

    def make(self, size: int) -> None:
        """Use up room for characters; raises when there is none left."""

    def make_items(self, count: int) -> None:
        """Use up room for items of lists and dicts."""

    def measure(self, value: Value, depth: int = 0) -> None:
        """Use up the room that a whole value takes."""

    def compare(self, value: Value, times: int = 1) -> None:
        """Use up what it takes to compare a whole value that often."""

    def text(self, value: Value) -> str:
        """The text a value has in a prompt."""

    def items(self, value: Value) -> list[Value]:
        """What a loop over a value sees."""

    def refuse(self, message: str) -> Exception:
        """The exception that says why there is no result."""


@dataclass(frozen=True)
class Function:
    """A function or method.

    Attributes:
        name: as programs call it.
        least, most: how many arguments it takes, a method's own value not counted; `most` is None where there
            is no limit.
        named: the arguments that may be given by name (only so).
        compute: takes the work, then the arguments (a method: its value first).
    """

    name: str
    least: int
    most: int | None
    named: tuple[str, ...]
    compute: Callable[..., Value]

    def wrong_count(self, count: int) -> str | None:
        """What is wrong with giving it `count` arguments; None where nothing is."""
        if self.least <= count and (self.most is None or count <= self.most):
            return None
        if self.most is None:
            wanted = f"at least {self.least}"
        else:
            wanted = str(self.least) if self.least == self.most else f"{self.least} to {self.most}"
        return f"`{self.name}` takes {wanted} argument{'' if wanted in ('1', 'at least 1') else 's'}, not {count}"

    def call(self, work: Work, arguments: list[Value], named: dict[str, Value], is_method: bool = False) -> Value:
        """Run it; raises what `work.refuse` makes where it has no result."""
        wrong = self.wrong_count(len(arguments) - is_method)
        unknown = next((name for name in named if name not in self.named), None)
        if wrong is not None or unknown is not None:
            raise work.refuse(wrong or f"`{self.name}` has no argument `{unknown}`")
        return self.compute(work, *arguments, **named)


FUNCTIONS: dict[str, Function] = {}
METHODS: dict[type, dict[str, Function]] = {str: {}, list: {}, dict: {}}

_Compute = TypeVar("_Compute", bound=Callable[..., Value])


def _function(
    least: int, most: int | None = None, named: tuple[str, ...] = (), unlimited: bool = False
) -> Callable[[_Compute], _Compute]:
    def register(compute: _Compute) -> _Compute:
        name = compute.__name__.strip("_")
        FUNCTIONS[name] = Function(name, least, None if unlimited else most or least, named, compute)
        return compute

    return register


def _method(kind: type, least: int, most: int | None = None) -> Callable[[_Compute], _Compute]:
    def register(compute: _Compute) -> _Compute:
        name = compute.__name__.removeprefix(f"_{kind.__name__}_")
        METHODS[kind][name] = Function(name, least, least if most is None else most, (), compute)
        return compute

    return register


def _need(work: Work, value: Value, kind: type[T], name: str) -> T:
    """The value, where it is of a kind."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise work.refuse(f"`{name}` needs {kind.__name__}, not {type_name(value)}")
    return value


def _number(work: Work, value: Value, name: str) -> int | float:
    if not isinstance(value, int | float):
        raise work.refuse(f"`{name}` needs a number, not {type_name(value)}")
    return value


# Functions -------------------------------------------------------------------------------------------


@_function(1)
def _len(work: Work, value: Value) -> Value:
    if not isinstance(value, str | list | dict):
        raise work.refuse(f"{type_name(value)} has no length")
    return len(value)


@_function(1)
def _str(work: Work, value: Value) -> Value:
    text = work.text(value)
    work.make(len(text))
    return text


@_function(1)
def _int(work: Work, value: Value) -> Value:
    if not isinstance(value, str | int | float):
        raise work.refuse(f"`int` can't read {type_name(value)}")
    try:
        return int(value)
    except ValueError:
        raise work.refuse(
            f"`int` can't read {value[:40]!r}" if isinstance(value, str) else "`int` can't read this"
        ) from None


@_function(1)
def _float(work: Work, value: Value) -> Value:
    if not isinstance(value, str | int | float):
        raise work.refuse(f"`float` can't read {type_name(value)}")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise work.refuse(f"`float` can't read {str(value)[:40]!r}")
    return number


@_function(1)
def _bool(work: Work, value: Value) -> Value:
    return bool(value)


@_function(1)
def _abs(work: Work, value: Value) -> Value:
    return abs(_number(work, value, "abs"))


@_function(1, 2)
def _round(work: Work, value: Value, digits: Value = None) -> Value:
    number = _number(work, value, "round")
    if digits is None:
        return round(number)
    places = _need(work, digits, int, "round")
    return round(number, max(-400, min(400, places)))


@_function(1, unlimited=True)
def _min(work: Work, *values: Value) -> Value:
    return _extreme(work, "min", values)


@_function(1, unlimited=True)
def _max(work: Work, *values: Value) -> Value:
    return _extreme(work, "max", values)


def _extreme(work: Work, name: str, values: tuple[Value, ...]) -> Value:
    items = work.items(values[0]) if len(values) == 1 else list(values)
    if not items:
        raise work.refuse(f"`{name}` needs at least one item")
    ordered = _in_order(work, name, items)
    return ordered[0] if name == "min" else ordered[-1]


def _in_order(work: Work, name: str, items: list[Value]) -> list[Value]:
    """Items from least to greatest: all must be numbers, or all strings."""
    work.step(len(items))
    numbers = [item for item in items if isinstance(item, int | float)]
    if len(numbers) == len(items):
        return [*sorted(numbers)]
    strings = [item for item in items if isinstance(item, str)]
    if len(strings) == len(items):
        return [*sorted(strings)]
    raise work.refuse(f"`{name}` needs items that are all numbers or all strings")


@_function(1, 2)
def _sum(work: Work, values: Value, start: Value = 0) -> Value:
    items = work.items(values)
    work.step(len(items))
    total = sum((_number(work, item, "sum") for item in items), _number(work, start, "sum"))
    return _finite(total)


def _finite(number: int | float) -> int | float:
    if not math.isfinite(number):
        raise OverflowError
    return number


@_function(1, named=("reverse",))
def _sorted(work: Work, values: Value, reverse: Value = False) -> Value:
    items = work.items(values)
    work.make_items(len(items))
    ordered = _in_order(work, "sorted", items)
    return ordered[::-1] if reverse else ordered


@_function(1, 3)
def _range(work: Work, *bounds: Value) -> Value:
    whole = [_need(work, bound, int, "range") for bound in bounds]
    if len(whole) == 3 and whole[2] == 0:
        raise work.refuse("`range` can't go in steps of 0")
    numbers = range(*whole)
    work.make_items(len(numbers))
    return list(numbers)


@_function(0, unlimited=True)
def _zip(work: Work, *values: Value) -> Value:
    columns = [work.items(value) for value in values]
    work.make_items((len(columns) + 1) * min(map(len, columns), default=0))
    return [list(row) for row in zip(*columns, strict=False)]


@_function(1, 2)
def _enumerate(work: Work, values: Value, start: Value = 0) -> Value:
    items = work.items(values)
    work.make_items(3 * len(items))
    return [[index, item] for index, item in enumerate(items, _need(work, start, int, "enumerate"))]


@_function(1)
def _any(work: Work, values: Value) -> Value:
    return any(work.items(values))


@_function(1)
def _all(work: Work, values: Value) -> Value:
    return all(work.items(values))


@_function(1)
def _reversed(work: Work, values: Value) -> Value:
    items = work.items(values)
    work.make_items(len(items))
    return items[::-1]


@_function(1)
def _json(work: Work, value: Value) -> Value:
    work.measure(value)
    try:
        text = render_json(value)
    except TypeError as error:
        raise work.refuse(str(error)) from None
    work.make(len(text))
    return text


# Methods of str --------------------------------------------------------------------------------------


def _stripper(name: str) -> None:
    strip = getattr(str, name)

    def compute(work: Work, text: str, characters: Value = None) -> Value:
        work.make(len(text))
        return str(strip(text, None if characters is None else _need(work, characters, str, name)))

    METHODS[str][name] = Function(name, 0, 1, (), compute)


def _changer(name: str) -> None:
    change = getattr(str, name)

    def compute(work: Work, text: str) -> Value:
        work.make(3 * len(text))
        return str(change(text))

    METHODS[str][name] = Function(name, 0, 0, (), compute)


def _finder(name: str) -> None:
    find = getattr(str, name)

    def compute(work: Work, text: str, part: Value) -> Value:
        work.step(len(text) // 1000)
        result: int | bool = find(text, _need(work, part, str, name))
        return result

    METHODS[str][name] = Function(name, 1, 1, (), compute)


for _name in ("strip", "lstrip", "rstrip"):
    _stripper(_name)
for _name in ("lower", "upper", "title"):
    _changer(_name)
for _name in ("startswith", "endswith", "find", "count"):
    _finder(_name)


@_method(str, 0, 2)
def _str_split(work: Work, text: str, separator: Value = None, most: Value = -1) -> Value:
    between = None if separator is None else _need(work, separator, str, "split")
    if between == "":
        raise work.refuse("`split` needs a separator that isn't empty")
    work.make(2 * len(text))
    parts = text.split(between, _need(work, most, int, "split"))
    work.make_items(len(parts))
    return list(parts)


@_method(str, 0)
def _str_splitlines(work: Work, text: str) -> Value:
    work.make(2 * len(text))
    lines = text.splitlines()
    work.make_items(len(lines))
    return list(lines)


@_method(str, 1)
def _str_join(work: Work, text: str, values: Value) -> Value:
    strings = [_need(work, item, str, "join") for item in work.items(values)]
    work.make(sum(map(len, strings)) + len(text) * len(strings))
    return text.join(strings)


@_method(str, 2, 3)
def _str_replace(work: Work, text: str, old: Value, new: Value, most: Value = -1) -> Value:
    before, after, times = (
        _need(work, old, str, "replace"),
        _need(work, new, str, "replace"),
        _need(work, most, int, "replace"),
    )
    found = text.count(before)
    work.make(len(text) + len(after) * (found if times < 0 else min(found, times)))
    return text.replace(before, after, times)


# Methods of list and dict ----------------------------------------------------------------------------


@_method(list, 1)
def _list_index(work: Work, items: list[Value], item: Value) -> Value:
    work.compare(item, len(items))
    if item not in items:
        raise work.refuse(f"{render_text(item)[:40]!r} is not in the list")
    return items.index(item)


@_method(list, 1)
def _list_count(work: Work, items: list[Value], item: Value) -> Value:
    work.compare(item, len(items))
    return items.count(item)


@_method(dict, 0)
def _dict_keys(work: Work, entries: dict[str, Value]) -> Value:
    work.make_items(len(entries))
    return list(entries)


@_method(dict, 0)
def _dict_values(work: Work, entries: dict[str, Value]) -> Value:
    work.make_items(len(entries))
    return list(entries.values())


@_method(dict, 0)
def _dict_items(work: Work, entries: dict[str, Value]) -> Value:
    work.make_items(3 * len(entries))
    return [[key, value] for key, value in entries.items()]


@_method(dict, 1, 2)
def _dict_get(work: Work, entries: dict[str, Value], key: Value, default: Value = None) -> Value:
    return entries.get(_need(work, key, str, "get"), default)
