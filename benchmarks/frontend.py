"""What the front end costs: `python benchmarks/frontend.py`.

Processor time to parse, check and lower generated programs and to run all passes over them: files of 100, 1,000 and
10,000 lines, and programs of one kind of thing, many times, and twice as many. The last column says by how much the
larger one costs more. The parser's tables are made before the clock starts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from time import process_time

from promptlang.checker.check import check
from promptlang.compiler.lower import lower
from promptlang.compiler.passes.optimise import optimise
from promptlang.diagnostics.source import Source
from promptlang.syntax.loader import Bundle, load_source

LINES = (100, 1_000, 10_000)

HEAD = '''"""A file of programs that triage tickets, as a generator would write it."""

type Team = "billing" | "network" | "account"

const TONE = "calm"


record Reply:
    team: Team
    urgency: int in 1..5
    body: str = ""


tool note(text: str)


fragment introduce(topic: str):
    system: "You answer questions about ${topic}. Be ${TONE}."

'''

PROGRAM = '''
## Answers tickets of kind NUMBER.
program triage_NUMBER(ticket: str, names: list[str] = ["a", "b"], most: int = 3) -> Reply:
    use introduce("kind NUMBER")
    user: """
        Ticket: ${ticket}
        Names: ${", ".join([name.strip() for name in names if name != ""])}
        """
    assistant: team = select("billing", "network", "account")
    fork 3 as drafts:
        user: "Draft a reply for the ${team} team."
        assistant: body = gen(max_tokens=60, temperature=0.8, stop="\\n")
        user: "Rate it."
        assistant: mark = gen(int in 1..5)
        keep 1 by mark
    adopt drafts[0]
    rounds = 0
    while rounds < most limit 10:
        rounds = rounds + 1
        if len(body) > 20 and team == "billing":
            note("long: ${body[:10]}")
        else:
            log "round ${rounds} of ${most}"
    assistant: urgency = gen(int in 1..5)
    return Reply(team=team, urgency=urgency, body=body)

'''


def program_of(lines: int) -> str:
    """A program of about that many lines."""
    count = max(1, (lines - HEAD.count("\n")) // PROGRAM.count("\n"))
    return HEAD + "".join(PROGRAM.replace("NUMBER", str(number)) for number in range(count))


ASKED = "\nprogram ask(word: str):\n    answer = gen(max_tokens=3)\n    return answer\n"


def statements(count: int) -> str:
    """A program of that many statements."""
    return _program(f'x{number} = word + "{number}"' if number % 3 else '" and ${word}"' for number in range(count))


def forks(count: int) -> str:
    """A program of that many forks."""
    return _program(f"fork 2 as b{number}:\n        x = gen(max_tokens=3)" for number in range(count))


def dead_calls(count: int) -> str:
    """A program that calls another that often, and reads nothing of it."""
    return _program(f"x{number} = ask(word)" for number in range(count)) + ASKED


def chained_programs(count: int) -> str:
    """So many programs, each of which calls the next."""
    ends = [f"    y = p{number + 1}(x)\n    return y\n\n" for number in range(count - 1)] + ["    return x\n"]
    head = "program p{}(word: str) -> str:\n    x = gen(max_tokens=2)\n"
    return "".join(head.format(number) + end for number, end in enumerate(ends))


def _program(lines: Iterable[str]) -> str:
    return "program main(word: str):\n" + "".join(f"    {line}\n" for line in lines) + "    return word\n"


KINDS: Mapping[str, tuple[Callable[[int], str], Sequence[int]]] = {
    "lines": (program_of, LINES),
    "statements": (statements, (5_000, 10_000)),
    "forks": (forks, (1_000, 2_000)),
    "dead calls": (dead_calls, (1_000, 2_000)),
    "chained programs": (chained_programs, (1_000, 2_000)),
}
"""What is measured: a text by its size, and the sizes."""


def seconds(text: str) -> dict[str, float]:
    """Processor time of each part, in seconds."""
    started = process_time()
    bundle: Bundle = load_source(Source(text, "generated.pl"))
    parsed = process_time()
    checked = check(bundle)
    assert checked.ok, checked.diagnostics[0]
    found = process_time()
    graphs = lower(checked)
    lowered = process_time()
    optimise(graphs)
    return {
        "parse": parsed - started,
        "check": found - parsed,
        "lower": lowered - found,
        "passes": process_time() - lowered,
    }


def main() -> None:
    parts = seconds(program_of(1))
    print(f"{'what':>24} " + " ".join(f"{part:>9}" for part in (*parts, "all", "growth")))
    for kind, (written, sizes) in KINDS.items():
        before = 0.0
        for size in sizes:
            spent = seconds(written(size))
            total = sum(spent.values())
            growth = f"{total / before:.1f}x" if before else ""
            cells = " ".join(f"{1000 * part:6.0f} ms" for part in (*spent.values(), total))
            print(f"{f'{size} {kind}':>24} {cells} {growth:>9}")
            before = total


if __name__ == "__main__":
    main()
