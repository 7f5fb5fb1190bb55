program p(topic: str):
    fork 3 as tries:
        "About ${topic}:"
        x = gen(max_tokens=5, temperature=1)
        keep first 2
        y = gen(max_tokens=5, temperature=1)
        require y != "no" else retry 2
        require x != y else retry 2
    log tries[0].y
#! 5:9 PL315 the `require` of line 8 would run this `keep` again, when its siblings are gone [keep after the `require`]
