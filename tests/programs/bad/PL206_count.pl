program p(x: int):
    log len(x, x)
    y = p(1, 2)
    log y
    log "a,b".split(",", 1, 2)
#! 2:9 PL206 `len` takes 1 argument, not 2
#! 3:9 PL206 `p` takes 1 argument, not 2
#! 5:9 PL206 `split` takes 0 to 2 arguments, not 3
