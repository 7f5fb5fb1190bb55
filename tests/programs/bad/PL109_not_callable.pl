const LIMIT = 3


program p(x: int):
    log x(3)
    log LIMIT(3)
#! 5:9 PL109 `x` can't be called: it is a variable
#! 6:9 PL109 `LIMIT` can't be called: it is a const
