record Reply:
    body: str
    body: int


program p(a: int, a: int):
    log a
    fork as sides:
        arm left:
            pass
        arm left:
            pass
    log sides
#! 3:5 PL105 two fields are called `body`
#! 6:19 PL105 two parameters are called `a`
#! 11:9 PL105 two arms are called `left`
