record Reply:
    urgency: int in 1..5
    size: int = "large"


program p(x: int) -> Reply:
    r = Reply(urgency=7, size=1)
    log r
    fork "two" as b:
        y = gen()
        keep 1 by y
    log b
    log "abc"["x"]
    z = p("three")
    log z
    return "done"
#! 3:17 PL201 the default of `size` must be int, not "large"
#! 7:23 PL201 `urgency` of `Reply` must be int in 1..5, not 7
#! 9:10 PL201 the count of a fork must be a whole number, at least 0, not "two"
#! 11:19 PL201 what branches are ranked by must be a number, not str
#! 13:15 PL201 this index must be int, not "x"
#! 14:11 PL201 `x` of `p` must be int, not "three"
#! 16:12 PL201 the result must be Reply, not "done"
