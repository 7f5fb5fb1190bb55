# Steps that are told apart by their tags, in loops, forks, comprehensions and fields of other records.


record Search:
    kind: "search"
    query: str
    ## Looks into what was found before.
    within: Search | none


record Compute:
    kind: "compute"
    expression: str
    exact: bool


record Answer:
    kind: "answer"
    text: str


record Turn:
    thought: str
    step: Search | Compute | Answer


tool search(query: str) -> list[str]
tool compute(expression: str) -> float | none


program main(question: str) -> str:
    user: "Question: ${question}"
    assistant:
        for i in range(4):
            turn = gen(Turn, max_tokens=60)
            if turn.step.kind == "answer":
                return turn.step.text
            if turn.step.kind == "search":
                hits = search(turn.step.query)
                "Found ${len(hits)}."
            else:
                number = compute(turn.step.expression)
                "${"It can't be said." if number == none else "It is ${number + 1}."}"
        last = gen(Search | Answer, temperature=1)
        require last.kind != "search" else retry 2
    return last.text


program plan(question: str) -> list[str]:
    user: "Question: ${question}"
    assistant: steps = gen(list[Search | Compute, 1..3], max_tokens=80)
    fork step in steps as done:
        log step.kind
        if step.kind == "search" and step.within:
            hits = search(step.within.query)
            found = "${len(hits)} of ${step.query}"
        elif step.kind in ["search", "answer"]:
            found = step.query
        else:
            found = "exactly ${step.expression}" if step.exact else step.expression
    return [one.found for one in done] + [
        step.query
        for step in steps
        if not step.kind == "compute"
    ]


program first(question: str) -> Answer:
    user: "Question: ${question}"
    assistant:
        for i in range(3):
            step = gen(Search | Answer, max_tokens=40)
            if step.kind == "search":
                continue
            return step
    return Answer(kind="answer", text="")
