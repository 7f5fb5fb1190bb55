program p(topic: str):
    require len(topic) > 3 else retry 2
    require len(topic) > 2 else retry 0 else "a topic of one letter: ${topic}"
    "About ${topic}:"
    x = gen(max_tokens=5, temperature=1)
    if len(x) > 2:
        require x != "no" else retry 3
    require 1 > 2 else retry 1
    y = "before"
    while y == "before":
        require y != topic else retry 1
        y = gen(max_tokens=2, temperature=1)
#! 2:13 PL314 nothing in this block gives this another value [put `require` into the block that asks the model for it, or say `retry 0`]
#! 7:17 PL314 nothing in this block gives this another value [put `require` into the block that asks the model for it, or say `retry 0`]
#! 8:13 PL314 nothing in this block gives this another value [put `require` into the block that asks the model for it, or say `retry 0`]
#! 11:17 PL314 nothing in this block gives this another value [put `require` into the block that asks the model for it, or say `retry 0`]
