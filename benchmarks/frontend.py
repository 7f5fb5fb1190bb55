"""What the front end costs: `python benchmarks/frontend.py`.

Processor time to parse, check and lower generated programs of 100, 1,000 and 10,000 lines, and by how much ten times
the lines cost more. The parser's tables are made before the clock starts.
"""

from time import process_time

from promptlang.checker.check import check
from promptlang.compiler.lower import lower
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


def seconds(text: str) -> dict[str, float]:
    """Processor time of each part, in seconds."""
    started = process_time()
    bundle: Bundle = load_source(Source(text, "generated.pl"))
    parsed = process_time()
    checked = check(bundle)
    assert not checked.diagnostics, checked.diagnostics[0]
    found = process_time()
    lower(checked)
    return {"parse": parsed - started, "check": found - parsed, "lower": process_time() - found}


def main() -> None:
    seconds(program_of(1))
    print(f"{'lines':>8} {'parse':>9} {'check':>9} {'lower':>9} {'all':>9} {'growth':>8}")
    before = 0.0
    for lines in LINES:
        text = program_of(lines)
        spent = seconds(text)
        total = sum(spent.values())
        growth = f"{total / before:.1f}x" if before else ""
        cells = " ".join(f"{1000 * part:6.0f} ms" for part in (*spent.values(), total))
        print(f"{text.count(chr(10)):>8} {cells} {growth:>8}")
        before = total


if __name__ == "__main__":
    main()
