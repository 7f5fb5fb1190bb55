"""Whether JSON data fits a schema. Apart from the others, for jsonschema takes long to import."""

import json
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator, TypeChecker, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for

from promptlang.grammar.json_schema.decimals import is_multiple, with_decimals

KEPT = 64
"""Schemas kept ready."""


def check_instance(text: str, value: Any) -> None:
    """Check JSON data against a schema, in exact decimals.

    Args:
        text: the schema.
        value: the data; its floats are taken for their shortest decimals, unless they are `Written`.

    Raises:
        ValueError: it doesn't fit; `str()` says where and why.
    """
    try:
        _validator(text).validate(with_decimals(value))
    except ValidationError as error:
        raise ValueError(f"{error.json_path}: {error.message}") from error


@lru_cache(KEPT)
def _validator(text: str) -> Validator:
    schema = with_decimals(json.loads(text))
    stock = validator_for(schema, default=Draft202012Validator)
    types = stock.TYPE_CHECKER.redefine("integer", _is_integer)
    exact: type[Validator] = extend(stock, {"multipleOf": _check_multiple}, type_checker=types)
    return exact(schema)


def _is_integer(checker: TypeChecker, value: Any) -> bool:
    is_whole = isinstance(value, Decimal) and is_multiple(value, Decimal(1))
    return is_whole or (isinstance(value, int) and not isinstance(value, bool))


def _check_multiple(validator: Validator, divisor: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    if validator.is_type(value, "number") and not is_multiple(Decimal(value), Decimal(divisor)):
        yield ValidationError(f"{value!r} is not a multiple of {divisor!r}")
