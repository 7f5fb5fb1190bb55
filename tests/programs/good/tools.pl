"""Host functions: what they take, what they give, and where they may be called."""

import "library/helpers.pl" as helpers


record Hit:
    title: str
    place: helpers.Point


## Looks something up.
tool search(
    query: str,
    ## How many at most.
    limit: int in 1..9 = 3,
) -> list[Hit]
tool note(text: str, at: helpers.Point | none = none)
tool now() -> float


program find(query: str) -> list[Hit]:
    hits = search(query)
    return hits


program main(question: str):
    began = now()
    user: "Question: ${question}"
    fork word in question.split() as looks:
        found = search(word, limit=1)
        note("looked for ${word}", at=found[0].place)
    both = find("both")
    note(text="${len(both)} at ${began + 1}")
    assistant: answer = gen(max_tokens=20)
