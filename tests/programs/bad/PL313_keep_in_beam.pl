program p():
    beam depth=2 width=2 branch=2 by x as paths:
        "Say: "
        x = gen(int in 1..5, temperature=1)
        if x > 3:
            keep where x > 4
        fork 2 as inner:
            y = gen(max_tokens=3)
            keep first 1
        log inner[0].y
    log paths[0].x
#! 3:9 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 6:13 PL313 `keep` can't stand in a beam, which keeps its best paths itself [say what ranks the paths after `by` of the beam]
