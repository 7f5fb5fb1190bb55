# A ticket is routed, three replies are drafted beside one another, and the best one is kept: triage.pl in Python.
#
#     python examples/triage.py "My bill is wrong"
#
# Look at: plain control flow and real values. The three drafts run side by side though nothing here is `async`, and a
# draft that is not kept ends at its `keep`. The answers are those of triage.pl, token for token.

"""Route a support ticket, draft three replies, keep the best one."""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

import promptlang as pl

Team = Literal["billing", "network", "account"]
Stars = Annotated[int, pl.Range(1, 5)]
TEAMS: tuple[Team, ...] = ("billing", "network", "account")


@dataclass(frozen=True)
class Reply:
    team: Team
    urgency: Stars
    body: str


@pl.program
def triage(p: pl.Prompt, ticket: str, tone: str = "friendly") -> Reply:
    p.system(f"You answer support tickets for Acme. Be {tone}.")
    p.user(f"Ticket: {ticket}\nWhich team owns it?")
    with p.assistant():
        team = p.select(TEAMS)

    def draft(b: pl.Branch) -> str:
        b.user(f"Draft a short reply for the {team} team.")
        with b.assistant():
            body = b.gen(max_tokens=60, temperature=0.8, stop="\n")
        b.user("Rate that reply from 1 to 5.")
        with b.assistant():
            score = b.gen(Stars)
        b.keep(1, by=score)
        return body

    drafts = p.fork(3, draft, name="drafts")
    p.adopt(drafts[0])

    p.user("How urgent is the ticket, from 1 to 5?")
    with p.assistant():
        urgency = p.gen(Stars)
    return Reply(team, urgency, drafts[0].value)


if __name__ == "__main__":
    print(triage(sys.argv[1] if len(sys.argv) > 1 else "My bill is wrong"))
