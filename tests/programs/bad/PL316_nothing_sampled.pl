fragment say():
    "Say: "
    gen(max_tokens=3)


program p(topic: str, heat: float):
    "About ${topic}:"
    x = gen(max_tokens=5)
    require x != "no" else retry 2
    y = gen(max_tokens=5, temperature=0)
    use say()
    z = select("a", "b", temperature=0.0)
    require y != z else retry 2
    a = gen(max_tokens=5, temperature=heat)
    require a != "no" else retry 2
    b = gen(max_tokens=5, temperature=1, seed=3)
    require b != "no" else retry 65
    require b != "no" else retry heat else 3
    beam depth=0 width=2 branch=2 by b as paths:
        "more"
        c = gen(max_tokens=5)
    log paths[0].c + paths[0].score
#! 2:5 PL409 warning: this text ends in a space right before an answer [drop the space: it belongs to the first token of the answer]
#! 9:5 PL316 warning: nothing here is drawn at random: every retry gives the same answer [give a `gen` or `select` in it a temperature above 0, and no `seed`]
#! 13:5 PL316 warning: nothing here is drawn at random: every retry gives the same answer [give a `gen` or `select` in it a temperature above 0, and no `seed`]
#! 17:5 PL316 warning: nothing here is drawn at random: every retry gives the same answer [give a `gen` or `select` in it a temperature above 0, and no `seed`]
#! 17:34 PL201 `retry` must be a whole number from 0 to 64, not 65
#! 18:5 PL316 warning: nothing here is drawn at random: every retry gives the same answer [give a `gen` or `select` in it a temperature above 0, and no `seed`]
#! 18:34 PL201 `retry` must be a whole number from 0 to 64, not float
#! 18:44 PL201 the message of `require` must be str, not 3
#! 19:5 PL316 warning: nothing here is drawn at random: every branch of a path says the same [give a `gen` or `select` in it a temperature above 0, and no `seed`]
#! 19:16 PL201 `depth` of a beam must be a whole number from 1 to 4096, not 0
#! 19:38 PL201 what paths are ranked by must be a number, not str
#! 22:9 PL202 `+` can't take str and float [fill a value into text with `${...}`]
