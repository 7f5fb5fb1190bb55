"""What drafts give, and what they cost where they give nothing: `python benchmarks/speculation.py [--dtype int4]`.

Each program runs on two engines in turns, one of which computes no token before it is written. Prints the seconds of
both and their ratio. Answers are the same, or a close choice has turned; how many are is printed too.
"""

import argparse
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from rich.console import Console
from rich.table import Table

import promptlang as pl

PASSAGES = (
    "Maria walked to the harbour before the sun was up, for the fishing boats come in early in spring. She bought "
    "three mackerel and a bag of shrimps from an old man with a red cap, and paid him with the coins that her "
    "brother had sent from Lisbon. Then Maria went home along the wall, where the cats wait for what the nets "
    "have left.",
    "The bridge over the Elm was closed on Monday after an inspection found cracks in two of its nine piers. "
    "Maria Keller, who leads the town's works department, said that repairs will take eleven weeks and cost "
    "340,000 euros. Buses are sent over the mill road until then, and the market stays where it is.",
    "To keep bees through the winter, leave each hive with at least fifteen kilograms of honey. Maria feeds hers "
    "with sugar water in October, closes the lower entrance against mice, and lays a sheet of wool under the "
    "roof. In February she lifts one side of every hive with a finger, and knows by its weight who needs help.",
    "The committee met on 14 May with seven members present. Maria Osei reported that the archive has been moved "
    "to the second floor and that 1,200 letters still have to be listed. The members thanked her, agreed to buy a "
    "second scanner for no more than 900 pounds, and fixed the next meeting for 11 June.",
)

PEOPLE = (
    ("Anna Weber", "Bremen", 1961), ("Tomás Silva", "Porto", 1984), ("Ines Laurent", "Lyon", 1990),
    ("Piotr Nowak", "Gdynia", 1978), ("Mary O'Neill", "Cork", 2001), ("Jonas Berg", "Malmö", 1969),
    ("Lucia Conti", "Parma", 1995), ("Erik Holm", "Aarhus", 1983),
)  # fmt: skip

SUBJECTS = ("a lighthouse", "the first day of school", "a lost umbrella", "why bread rises")

PROGRAMS = pl.load_all(Path(__file__).with_suffix(".pl"))


@dataclass(frozen=True)
class Workload:
    """A program with what it is asked, one after another."""

    name: str
    program: str
    arguments: tuple[dict[str, object], ...]


WORKLOADS = (
    Workload("quoting a text", "quote", tuple({"text": text} for text in PASSAGES)),
    Workload("rewriting a text", "rewrite", tuple({"text": text} for text in PASSAGES)),
    Workload("rows answered alike", "row", tuple({"name": n, "city": c, "year": y} for n, c, y in PEOPLE)),
    Workload("a text of its own, greedy", "story", tuple({"subject": subject} for subject in SUBJECTS)),
    Workload("a text of its own, drawn", "drawn", tuple({"subject": subject} for subject in SUBJECTS)),
)


def timed(program: pl.Program, engine: pl.Engine, arguments: dict[str, object]) -> tuple[float, pl.Outcome]:
    started = perf_counter()
    outcome = program.using(engine=engine).run(**arguments)
    return perf_counter() - started, outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", default="float32")
    dtype = parser.parse_args().dtype
    table = Table("answers", "plain, s", "drafting, s", "ratio", "tokens", "passes", "drafted", "held", "the same")
    with pl.Engine(dtype=dtype, speculation=False) as plain, pl.Engine(dtype=dtype) as drafting:
        for engine in (plain, drafting):
            timed(PROGRAMS["story"], engine, {"subject": "rain"})
        for workload in WORKLOADS:
            table.add_row(workload.name, *row(PROGRAMS[workload.program], plain, drafting, workload))
    Console(width=120).print(table)


def row(program: pl.Program, plain: pl.Engine, drafting: pl.Engine, workload: Workload) -> list[str]:
    seconds = {plain: 0.0, drafting: 0.0}
    same, usages = 0, []
    for at, arguments in enumerate(workload.arguments):
        results = {}
        for engine in (plain, drafting) if at % 2 else (drafting, plain):
            took, outcome = timed(program, engine, arguments)
            seconds[engine] += took
            results[engine] = outcome
        same += results[plain].result == results[drafting].result
        usages.append(results[drafting].usage)
    total = [
        sum(getattr(usage, name) for usage in usages)
        for name in ("generated_tokens", "forwards", "drafted_tokens", "accepted_tokens")
    ]
    ratio = seconds[plain] / seconds[drafting]
    figures = (f"{seconds[plain]:.2f}", f"{seconds[drafting]:.2f}", f"{ratio:.2f}")
    return [*figures, *map(str, total), f"{same} of {len(workload.arguments)}"]


if __name__ == "__main__":
    main()
