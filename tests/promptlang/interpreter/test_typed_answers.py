"""A hundred records of twenty types on the embedded model: hot, in forks, beside stops, every one valid."""

import json
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from schema_corpus import SCHEMAS

from promptlang.checker.check import check
from promptlang.compiler.lower import lower
from promptlang.interpreter.interpreter import Interpreter
from promptlang.runtime.engine import Engine
from promptlang.runtime.local_backend import LocalBackend
from promptlang.runtime.models import embedded
from promptlang.runtime.models.loading import load
from promptlang.syntax.loader import load as load_program
from promptlang.values.conversion import to_json

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(embedded.find_gguf() is None, reason=f"needs {embedded.PACKAGE}"),
]

TYPES = [schema for schema in SCHEMAS if schema.get("type") == "object"][:20]

PROGRAM = """
program main():
    user: "Invent an entry for our files, as JSON."
    fork 5 as tries:
        assistant: entry = gen(schema "{number}.json", temperature=1.5, max_tokens=150, stop=["\\n", "###"])
    return [branch.entry for branch in tries]
"""


def test_a_hundred_records_of_twenty_types_are_all_valid(tmp_path: Path) -> None:
    engine = Engine(load())
    records: list[tuple[dict[str, Any], Any]] = []
    for number, schema in enumerate(TYPES):
        (tmp_path / f"{number}.json").write_text(json.dumps(schema))
        file = tmp_path / f"program{number}.pl"
        file.write_text(dedent(PROGRAM).replace("{number}", str(number)).lstrip())
        checked = check(load_program(file))
        assert checked.ok, checked.diagnostics
        interpreter = Interpreter(LocalBackend(engine), lower(checked), seed=number)
        outcome = interpreter.wait(interpreter.start("main", {}))
        records += [(schema, record) for record in to_json(outcome.result)]
    engine.check()
    assert len(records) == 100
    for schema, record in records:
        Draft202012Validator(schema).validate(record)
