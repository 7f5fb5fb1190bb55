"""A search in rounds, and answers that are asked for again."""


program plan(goal: str, depth: int = 2) -> list[str]:
    system: "You make plans."
    user: "My goal: ${goal}"

    assistant: title = gen(max_tokens=8, temperature=0.9, logprobs=true)
    require "." not in title and sum(title.logprobs) > -40 else retry 3 else "no title for ${goal}"

    steps = []
    beam depth=depth width=2 branch=3 by ease as plans:
        user: "What next?"
        assistant:
            step = gen(max_tokens=24, temperature=0.8, stop="\n")
            words = step.split()
            require len(words) > 1 else retry 2
        user: "How easy is that, from 1 to 10?"
        assistant: ease = gen(int in 1..10)
        steps = steps + [step]
    adopt plans[0]
    log "${plans[0].score} of ${len(plans)}"
    require depth > 0 else retry 0
    return steps
