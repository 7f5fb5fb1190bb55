"""What a program takes through Python, over the same through the command line's own way: `python benchmarks/doors.py`.

Both have the model loaded, and take turns; a ratio of sums.
"""

import json
from pathlib import Path
from time import perf_counter

from rich.console import Console

import promptlang as pl
from promptlang.session.program_file import ProgramFile
from promptlang.session.session import Session
from promptlang.session.settings import Settings

EXAMPLES = Path(__file__).parents[1] / "examples"
ROUNDS = 1


def main() -> None:
    file = str(EXAMPLES / "triage.pl")
    rows = [json.loads(line) for line in (EXAMPLES / "tickets.jsonl").read_text(encoding="utf-8").splitlines()]
    session = Session(Settings(speculates=False))
    program = ProgramFile.load(file).program()
    runner = session.runner(program, 0, {})
    seconds = {"command line": 0.0, "Python": 0.0}
    with pl.Engine(speculation=False) as engine:
        triage = pl.load(file).using(engine=engine, seed=0)
        ways = {"command line": lambda row: runner.run(row).result, "Python": lambda row: triage.run(**row).result}
        for way in ways.values():
            way(rows[0])
        for _ in range(ROUNDS):
            for row in rows:
                for name, way in ways.items():
                    started = perf_counter()
                    way(row)
                    seconds[name] += perf_counter() - started
    session.close()
    ratio = seconds["Python"] / seconds["command line"]
    Console().print(f"{ROUNDS * len(rows)} runs of triage: Python over the command line's way {ratio:.3f}", seconds)


if __name__ == "__main__":
    main()
