# A ticket is routed, three replies are drafted beside one another, and the best one is kept.
#
#     promptlang run examples/triage.pl --arg ticket="My bill is wrong"
#     promptlang run examples/triage.pl --data examples/tickets.jsonl
#
# Look at: the three drafts start from one prompt, so its tokens are computed once and asked for many times. With
# --no-cache every model call computes its whole prompt, and the result is the same.

"""Route a support ticket, draft three replies, keep the best one."""


record Reply:
    team: "billing" | "network" | "account"
    urgency: int in 1..5
    body: str


program triage(ticket: str, tone: str = "friendly") -> Reply:
    system: "You answer support tickets for Acme. Be ${tone}."
    user: """
        Ticket: ${ticket}
        Which team owns it?
        """
    assistant: team = select("billing", "network", "account")

    fork 3 as drafts:
        user: "Draft a short reply for the ${team} team."
        assistant: body = gen(max_tokens=60, temperature=0.8, stop="\n")
        user: "Rate that reply from 1 to 5."
        assistant: score = gen(int in 1..5)
        keep 1 by score
    adopt drafts[0]

    user: "How urgent is the ticket, from 1 to 5?"
    assistant: urgency = gen(int in 1..5)
    return Reply(team=team, urgency=urgency, body=body)
