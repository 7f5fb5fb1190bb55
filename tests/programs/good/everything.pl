"""Every statement that runs, once."""

import "library/helpers.pl" as helpers

type Level = int in 1..5

## How many drafts to write.
const DRAFTS = 2 + 1


record Reply:
    ## Who answers.
    team: "billing" | "network"
    urgency: Level
    body: str(max=200)
    tags: list[str, 0..3] = []


record Tree:
    name: str
    children: list[Tree]
    parent: Tree | none


fragment greet(name: str, mood: str = "friendly"):
    user: "Hello, I am ${name} and feel ${mood}."


## Answers a ticket.
program answer(
    ticket: str,
    ## How the reply sounds.
    tone: str = "calm",
    weights: dict[str, float] = {"billing": 1.0},
    names: list[str] = ["a", "b"],
) -> Reply:
    """A docstring that the comment above outranks."""
    system: "Be ${tone}. ${helpers.MOTTO}"
    use greet("Ann", mood="fine")
    use helpers.close()
    user: """
        Ticket: ${ticket}
        Weights: ${json(weights)} and {"json": "as is"} costs \$5
        Names: ${", ".join(["<${name}>" for name in names if name != ""])}
        """
    assistant: team = select("billing", "network", by="sum", temperature=0)
    log team.probs["billing"]
    pin

    fork DRAFTS as drafts:
        user: "Draft ${1 + 1}"
        assistant: body = gen(str(max=200), max_tokens=60, temperature=0.8, stop=["\n", "###"])
        if len(body) < 3:
            keep where false
        else:
            pass
        keep 1 by body.count(" ") / (len(body) + 1)
    adopt drafts[0]
    log drafts[0].text + " ${drafts[0].index} ${drafts[0].logprob}"

    fork name in names as looks or none:
        user: "${name}"
        assistant: verdict = gen("good" | "bad")
        keep first 1
    log [look.verdict for look in looks]

    fork as sides:
        arm left:
            user: "Left"
            assistant: view = gen(/[a-z]{1,5}/)
        arm right:
            user: "Right"
            assistant: view = gen(helpers.Point)
    log "${sides.left.view} ${sides.right.view.x}"

    rounds = 0
    while rounds < 3 limit 5:
        rounds = rounds + 1
        if rounds == 2:
            continue
        elif rounds > 2:
            break
    for index, name in enumerate(names):
        log "${index}: ${name}"
    user: "How urgent?"
    role "tool": "a tool's answer"
    assistant:
        urgency = gen(Level, max_tokens=3, seed=1)
        chance = score(" high")
    log chance
    second = helpers.shout(text=ticket)
    helpers.shout(second)
    return Reply(team, urgency, body=body)
