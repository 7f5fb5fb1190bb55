"""How a suite of JSON Schemas fares as constraints.

    python benchmarks/constraints.py FOLDER [--list]

FOLDER holds JSON files of cases, in the form of the JSON Schema Test Suite or of MaskBench: a schema, and instances
that are valid or not. Each instance's JSON goes through the constraint token by token: a valid one must be taken
whole, an invalid one refused somewhere.
"""

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from promptlang.grammar.compiler import compile_constraint
from promptlang.grammar.constraint import Constraint, ConstraintError
from promptlang.grammar.shapes import Schema
from promptlang.grammar.vocabulary import Vocabulary
from promptlang.runtime import embedded


@dataclass
class Case:
    """A schema and its instances, each with whether it is valid."""

    name: str
    schema: Any
    instances: list[tuple[Any, bool]]


@dataclass
class Tally:
    """What came of the instances and of the schemas, and times in seconds."""

    instances: Counter[str] = field(default_factory=Counter)
    schemas: Counter[str] = field(default_factory=Counter)
    compile_times: list[float] = field(default_factory=list)
    mask_times: list[float] = field(default_factory=list)


def cases(folder: Path) -> Iterator[Case]:
    """The cases below a folder; those below `draft7` are of that draft."""
    for file in sorted(folder.rglob("*.json")):
        content = json.loads(file.read_text(encoding="utf-8"))
        for case in content if isinstance(content, list) else [content]:
            schema = case["schema"]
            if "draft7" in file.parts and isinstance(schema, dict):
                schema = {"$schema": "http://json-schema.org/draft-07/schema#", **schema}
            instances = [(test["data"], test["valid"]) for test in case["tests"]]
            yield Case(f"{file.relative_to(folder)}: {case['description']}", schema, instances)


def judge(case: Case, vocabulary: Vocabulary, tally: Tally) -> list[str]:
    """Count one case; gives a line for each thing that is wrong or refused."""
    started = time.perf_counter()
    try:
        constraint = compile_constraint(Schema(json.dumps(case.schema, ensure_ascii=False)), vocabulary)
    except ConstraintError as error:
        tally.schemas["refused by name"] += 1
        tally.instances["refused by name"] += len(case.instances)
        return [f"refused by name: {case.name}: {error}"]
    finally:
        tally.compile_times.append(time.perf_counter() - started)
    verdicts = [(data, _verdict(constraint, data, is_valid, vocabulary, tally)) for data, is_valid in case.instances]
    tally.instances.update(verdict for _, verdict in verdicts)
    tally.schemas["right" if all(verdict == "right" for _, verdict in verdicts) else "wrong"] += 1
    return [f"{verdict}: {case.name}: {json.dumps(data)[:200]}" for data, verdict in verdicts if verdict != "right"]


def _verdict(constraint: Constraint, data: Any, is_valid: bool, vocabulary: Vocabulary, tally: Tally) -> str:
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    if _takes(constraint, vocabulary.encode(text), tally) == is_valid:
        return "right"
    return "wrong refusal" if is_valid else "wrong accept"


def _takes(constraint: Constraint, tokens: list[int], tally: Tally) -> bool:
    state = constraint.start()
    for token in tokens:
        started = time.perf_counter()
        mask = state.mask()
        tally.mask_times.append(time.perf_counter() - started)
        if not mask[token >> 5] >> (token & 31) & 1:
            return False
        state.advance(token)
    return state.can_end()


def report(tally: Tally) -> str:
    """The tally as a table."""
    rows = [("instances", tally.instances), ("schemas", tally.schemas)]
    lines = [
        f"{name:10} " + "  ".join(f"{what} {count}" for what, count in sorted(kinds.items())) for name, kinds in rows
    ]
    for name, times, unit, scale in (
        ("compile", tally.compile_times, "ms", 1e3),
        ("mask", tally.mask_times, "us", 1e6),
    ):
        middle, high, most = np.percentile(times, [50, 99, 100]) * scale
        lines.append(f"{name:10} p50 {middle:.1f} {unit}  p99 {high:.1f} {unit}  most {most:.1f} {unit}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", action="store_true", help="name each instance that is wrong or refused")
    options = parser.parse_args()
    vocabulary, tally = _embedded_vocabulary(), Tally()
    for case in cases(options.folder):
        lines = judge(case, vocabulary, tally)
        if options.list:
            print("\n".join(lines), end="\n" if lines else "")
    print(report(tally))


def _embedded_vocabulary() -> Vocabulary:
    file = embedded.find_gguf()
    if file is None:
        raise SystemExit(f"needs {embedded.PACKAGE}")
    tokenizer = embedded.load_tokenizer(embedded.converted(file, print))
    vocabulary = Vocabulary(
        tokenizer.token_bytes, tokenizer.special_ids, tokenizer.eos_ids, tokenizer.encode, tokenizer.fingerprint
    )
    assert vocabulary.llguidance
    return vocabulary


if __name__ == "__main__":
    main()
