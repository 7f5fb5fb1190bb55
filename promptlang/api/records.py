"""Temporary."""

from typing import Any

from promptlang.session.program_file import ProgramFile
from promptlang.values.conversion import to_json


def to_python(file: ProgramFile, value: Any) -> Any:
    return to_json(value)
