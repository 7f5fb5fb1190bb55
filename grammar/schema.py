"""JSON Schemas, made ready for llguidance."""

import json
from typing import Any


def prepare(text: str) -> str:
    """A schema as llguidance is to read it."""
    return json.dumps({**json.loads(text), "x-guidance": {"whitespace_flexible": False}})


def check_instance(text: str, value: Any) -> None:
    """Check JSON data against a schema.

    Raises:
        ValueError: it doesn't fit; `str()` says where and why.
    """
    from jsonschema import Draft202012Validator, ValidationError
    from jsonschema.validators import validator_for

    schema = json.loads(text)
    try:
        validator_for(schema, default=Draft202012Validator)(schema).validate(value)
    except ValidationError as error:
        raise ValueError(f"{error.json_path}: {error.message}") from error
