program p():
    while true:
        user: "More?"
        assistant: x = gen(max_tokens=3)
        while true:
            break
    while true limit 3:
        user: "More?"
    while true:
        if x == "no":
            return x
#! 2:5 PL318 warning: nothing ends this loop [leave it by `break` or `return`, or say `limit N`]
