"""Whether JSON data fits a schema. Apart from the others, for jsonschema takes long to import."""

import json
import re
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any

from jsonschema import Draft202012Validator, TypeChecker, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for

from promptlang.grammar.acceptor import finds
from promptlang.grammar.errors import ConstraintError
from promptlang.grammar.json_schema.decimals import is_multiple, with_decimals
from promptlang.grammar.json_schema.drafts import with_parts
from promptlang.grammar.json_schema.schema import without_nul


def check_instance(text: str, value: Any) -> None:
    """Check JSON data against a schema, in exact decimals.

    Args:
        text: the schema.
        value: the data; its floats are taken for their shortest decimals, unless they are `Written`.

    Raises:
        ValueError: it doesn't fit; `str()` says where and why.
    """
    try:
        schema = _with_listed_names(with_decimals(json.loads(text)), sorted(_names(value)))
        _validator(schema).validate(with_decimals(value))
    except ValidationError as error:
        raise ValueError(f"{error.json_path}: {error.message}") from error
    except ConstraintError as error:
        raise ValueError(str(error)) from error


def _validator(schema: Any) -> Validator:
    stock = validator_for(schema, default=Draft202012Validator)
    types = stock.TYPE_CHECKER.redefine("integer", _is_integer)
    exact: type[Validator] = extend(
        stock, {"multipleOf": _check_multiple, "pattern": _check_pattern}, type_checker=types
    )
    return exact(schema)


def _is_integer(checker: TypeChecker, value: Any) -> bool:
    is_whole = isinstance(value, Decimal) and is_multiple(value, Decimal(1))
    return is_whole or (isinstance(value, int) and not isinstance(value, bool))


def _check_multiple(validator: Validator, divisor: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "number") and not is_multiple(Decimal(value), Decimal(divisor)):
        yield ValidationError(f"{value!r} is not a multiple of {divisor!r}")


# Patterns ----------------------------------------------------------------------------------------------------
# Python's `re` reads other patterns than masks are made of, and some in another way.


def _check_pattern(validator: Validator, pattern: str, value: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "string") and not finds(without_nul(pattern), value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _with_listed_names(schema: Any, names: list[str]) -> Any:
    """A schema whose patterns of properties are lists of those names that they match."""
    if not isinstance(schema, dict):
        return schema
    ready = with_parts(schema, lambda part: _with_listed_names(part, names))
    patterns = ready.get("patternProperties", {})
    if patterns:
        listed = (_listed(number, pattern, names) for number, pattern in enumerate(patterns))
        ready["patternProperties"] = dict(zip(listed, patterns.values(), strict=True))
    return ready


def _listed(number: int, pattern: str, names: list[str]) -> str:
    """An expression for the names that a pattern matches, different for each number."""
    found = [re.escape(name) for name in names if finds(without_nul(pattern), name)]
    return f"(?#{number})" + (rf"\A(?:{'|'.join(found)})\Z" if found else "(?!)")


def _names(value: Any) -> set[str]:
    """The names of all properties in some data."""
    match value:
        case dict():
            return {*value, *_inner_names(value.values())}
        case list():
            return _inner_names(value)
    return set()


def _inner_names(values: Iterable[Any]) -> set[str]:
    return {name for value in values for name in _names(value)}
