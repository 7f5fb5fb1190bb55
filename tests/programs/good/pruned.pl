# What passes do: constants folded, a dead call and a dead arm pruned, a common head hoisted, equal branches merged.

const LEVEL = 2
const HOUSE = "Acme"


fragment rate(what: str):
    user: "Rate the ${what} from 1 to 5."
    assistant: mark = gen(int in 1..5)
    log mark


program help(text: str, words: list[str]) -> list[str]:
    system: "You work for ${HOUSE}, level ${LEVEL}."
    user: "Here is a text. ${text}"
    if LEVEL > 3:
        user: "Be short."
    unread = summary(text)
    fork as views:
        arm tone:
            user: "Read it again."
            user: "How does it sound?"
            assistant: note = gen(max_tokens=8, stop="\n")
        arm facts:
            user: "Read it again."
            user: "Is it true?"
            assistant: note = gen(max_tokens=8, stop="\n")
        arm unused:
            user: "Read it again."
            user: "Is it long?"
            assistant: note = gen(max_tokens=8, stop="\n")
    notes = [views.tone.note, views.facts.note]
    for word in words:
        user: "And ${word}?"
        assistant:
            if len(word) > 3:
                answer = gen(max_tokens=4)
            else:
                answer = select("yes", "no")
        notes = notes + [answer]
    use rate("text")
    fork 3 as same:
        user: "Say it once more."
        assistant: x = gen(max_tokens=4)
    short = summary(text)
    return notes + [one.x for one in same] + [short]


program summary(text: str) -> str:
    "${text}\n\nIn short:"
    said = gen(max_tokens=10, stop="\n")
    return said
