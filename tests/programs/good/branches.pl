# Every kind of fork and loop, an adopted branch, and calls that wait for one another.


program write(topic: str, words: list[str]) -> list[str]:
    "About ${topic}. "
    pin
    fork word in words as drafts or none:
        "First ${word}, "
        x = gen(max_tokens=4, temperature=1)
        keep where len(x) > 0
        keep first 2
    n = 0
    while n < 2 limit 5:
        " Then"
        y = gen(max_tokens=2)
        n = n + 1
        if y == "":
            break
    first = shout(topic)
    second = shout(first)
    fork 2 as ends:
        " In the end"
        z = gen(max_tokens=3, temperature=1)
        worth = score(" indeed")
        keep 1 by worth
    adopt ends[0]
    return [z, second] + [one.x for one in drafts]


program shout(text: str) -> str:
    "${text}!"
    loud = gen(max_tokens=3, stop=["\n", "."])
    return loud
