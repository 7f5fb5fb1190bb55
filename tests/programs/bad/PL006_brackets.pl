program p(x: int):
    y = [1, 2
    log y
    log (x + 1))
#! 2:9 PL006 `[` is never closed
#! 4:16 PL006 `)` closes nothing
