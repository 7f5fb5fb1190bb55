program p(x: int):
    y = p(1, x=2)
    log y
    z = gen(max_tokens=1, max_tokens=2)
    log z
#! 2:14 PL205 `x` of `p` is given twice
#! 4:27 PL205 `max_tokens` of `gen` is given twice
