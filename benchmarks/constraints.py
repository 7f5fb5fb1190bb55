"""How a suite of JSON Schemas fares as constraints.

    python benchmarks/constraints.py FOLDER [--peers] [--list] [--update] [--limit SECONDS]

FOLDER holds JSON files of cases, in the form of the JSON Schema Test Suite or of MaskBench: a schema, and instances
that are valid or not. Each instance's JSON goes through the constraint token by token: a valid one must be taken
whole, an invalid one refused somewhere. A schema is right where that holds for all its instances.

What is right is compared with `constraints.json` beside this file, under the folder's name: whatever was right must be
right still, and no invalid instance may be taken, or the command fails. `--update` writes what came to be right.
`--peers` runs other engines too.
"""

import argparse
import json
import multiprocessing as mp
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from constraint_engines import PEERS, Engine, Promptlang, Refused, State

from promptlang.grammar.vocabulary import Vocabulary
from promptlang.runtime.models import embedded, gguf_files

BASELINE = Path(__file__).with_name("constraints.json")
RIGHT, WRONG_ACCEPT, WRONG_REFUSAL = "right", "wrong accepts", "wrong refusals"
REFUSED, TOO_SLOW, CRASHED = "refused by name", "too slow", "crashed"


@dataclass
class Case:
    """A schema and its instances, each with whether it is valid."""

    name: str
    schema: Any
    instances: list[tuple[Any, bool]]


@dataclass
class Result:
    """What came of a case.

    Attributes:
        verdicts: one an instance.
        reason: why the schema was refused.
        compile_time: in seconds.
        mask_times: in seconds, one a token.
    """

    verdicts: list[str]
    reason: str = ""
    compile_time: float | None = None
    mask_times: list[float] = field(default_factory=list)

    @property
    def is_right(self) -> bool:
        return not self.reason and all(verdict == RIGHT for verdict in self.verdicts)


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


# One case ----------------------------------------------------------------------------------------------------


def judge(case: Case, engine: Engine, vocabulary: Vocabulary) -> Result:
    """Run one case through an engine."""
    started = time.perf_counter()
    result = Result([])
    try:
        start = engine.compile(case.schema)
    except Refused as error:
        return Result([REFUSED] * len(case.instances), str(error), time.perf_counter() - started)
    result.compile_time = time.perf_counter() - started
    for data, is_valid in case.instances:
        taken = _takes(start(), data, vocabulary, result.mask_times)
        result.verdicts.append(RIGHT if taken == is_valid else WRONG_REFUSAL if is_valid else WRONG_ACCEPT)
    return result


def _takes(state: State, data: Any, vocabulary: Vocabulary, mask_times: list[float]) -> bool:
    for token in vocabulary.encode(json.dumps(data, ensure_ascii=False, separators=(",", ":"))):
        started = time.perf_counter()
        mask = state.mask()
        mask_times.append(time.perf_counter() - started)
        if not mask[token >> 5] >> (token & 31) & 1:
            return False
        state.advance(token)
    return state.can_end()


class Worker:
    """An engine in a process of its own, so that what takes too long can be stopped."""

    def __init__(self, make: type[Engine], vocabulary: Vocabulary, limit: float) -> None:
        self._make = make
        self._vocabulary = vocabulary
        self._limit = limit
        self._start()

    def _start(self) -> None:
        self._pipe, other = mp.Pipe()
        context = mp.get_context("fork")
        self._process = context.Process(target=_serve, args=(self._make, self._vocabulary, other), daemon=True)
        self._process.start()
        other.close()

    def judge(self, case: Case) -> Result:
        """Run one case, within the limit."""
        self._pipe.send(case)
        verdict = TOO_SLOW
        if self._pipe.poll(self._limit):
            try:
                answer: Result = self._pipe.recv()
            except EOFError:
                verdict = CRASHED
            else:
                return answer
        self.stop()
        self._start()
        return Result([verdict] * len(case.instances), verdict)

    def stop(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.join()


def _serve(make: type[Engine], vocabulary: Vocabulary, pipe: Connection) -> None:
    engine = make(vocabulary)
    while True:
        pipe.send(judge(pipe.recv(), engine, vocabulary))


# A suite -----------------------------------------------------------------------------------------------------


def run(make: type[Engine], suite: list[Case], vocabulary: Vocabulary, limit: float) -> dict[str, Result]:
    """All results of an engine, by the names of the cases."""
    worker = Worker(make, vocabulary, limit)
    try:
        return {case.name: worker.judge(case) for case in suite}
    finally:
        worker.stop()


def row(name: str, results: list[Result]) -> str:
    """One line of the table."""
    instances = Counter(verdict for result in results for verdict in result.verdicts)
    refused = sum(bool(result.reason) and result.reason not in (TOO_SLOW, CRASHED) for result in results)
    failed = sum(result.reason in (TOO_SLOW, CRASHED) for result in results)
    columns = [sum(result.is_right for result in results), instances[WRONG_ACCEPT], instances[WRONG_REFUSAL]]
    compile_times = [result.compile_time for result in results if result.compile_time is not None]
    mask_times = [duration for result in results for duration in result.mask_times]
    times = [_percentiles(compile_times, 1e3), _percentiles(mask_times, 1e6)]
    return f"{name:14}" + "".join(f"{count:>9}" for count in [*columns, refused, failed]) + "".join(times)


COUNTED = ("right", "w.accept", "w.refuse", "refused", "failed")
HEAD = f"{'':14}" + "".join(f"{name:>9}" for name in COUNTED) + f"{'compile, ms':>26}{'mask, us':>26}"
"""Schemas right; instances wrongly accepted and wrongly refused; schemas refused by name, and stopped or crashed; times
at p50, p99 and most."""


def _percentiles(times: list[float], scale: float) -> str:
    if not times:
        return f"{'-':>26}"
    return f"{' / '.join(f'{value * scale:.1f}' for value in np.percentile(times, [50, 99, 100])):>26}"


def lost(results: dict[str, Result], suite: str) -> list[str]:
    """What is worse than the baseline says, a line each."""
    before = json.loads(BASELINE.read_text()).get(suite, []) if BASELINE.exists() else []
    worse = [f"no longer right: {name}" for name in before if name in results and not results[name].is_right]
    worse += [f"gone: {name}" for name in before if name not in results]
    return worse + [f"takes what is invalid: {name}" for name in results if WRONG_ACCEPT in results[name].verdicts]


def update(results: dict[str, Result], suite: str) -> None:
    """Write what is right into the baseline."""
    baseline = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    baseline[suite] = sorted(name for name, result in results.items() if result.is_right)
    BASELINE.write_text(json.dumps(baseline, indent=1, ensure_ascii=False, sort_keys=True) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--peers", action="store_true", help="run llguidance, outlines-core and xgrammar too")
    parser.add_argument("--list", action="store_true", help="name each schema that is not right")
    parser.add_argument("--update", action="store_true", help="write what is right into the baseline")
    parser.add_argument("--limit", type=float, default=5.0, help="seconds for one case (default 5)")
    options = parser.parse_args()
    vocabulary, suite, name = embedded_vocabulary(), list(cases(options.folder)), options.folder.resolve().name
    results = run(Promptlang, suite, vocabulary, options.limit)
    if options.list:
        _list(results)
    print(HEAD)
    print(row(Promptlang.name, [*results.values()]), flush=True)
    for peer in PEERS if options.peers else ():
        _compare(peer, suite, vocabulary, options.limit)
    worse = lost(results, name)
    print("\n".join(worse), file=sys.stderr, end="\n" if worse else "")
    if worse:
        sys.exit(1)
    if options.update:
        update(results, name)


def _list(results: dict[str, Result]) -> None:
    for name, result in results.items():
        if not result.is_right:
            print(f"{', '.join(sorted({*result.verdicts} - {RIGHT})) or REFUSED}: {name}: {result.reason}")


def _compare(peer: type[Engine], suite: list[Case], vocabulary: Vocabulary, limit: float) -> None:
    try:
        peer(vocabulary)
    except ImportError:
        print(f"{peer.name:14} not installed")
        return
    print(row(peer.name, [*run(peer, suite, vocabulary, limit).values()]), flush=True)


def embedded_vocabulary() -> Vocabulary:
    """The embedded model's tokens."""
    file = embedded.find_gguf()
    if file is None:
        raise SystemExit(f"needs {embedded.PACKAGE}")
    vocabulary = gguf_files.load_tokenizer(gguf_files.converted(file, print)).vocabulary
    assert vocabulary.llguidance
    return vocabulary


if __name__ == "__main__":
    main()
