program other(x: int) -> int:
    return x


program p():
    log 1 + other(2)
    log score("x") + 1
#! 6:13 PL307 `other(...)` can't stand inside an expression [give it a line of its own: `result = other(...)`]
#! 7:9 PL307 `score(...)` can't stand inside an expression [give it a line of its own: `result = score(...)`]
