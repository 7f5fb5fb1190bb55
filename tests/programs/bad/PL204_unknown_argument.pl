record Reply:
    body: str


program p(x: int):
    log Reply(bdy="x", body="y")
    log sorted([x], reversed=true)
#! 6:15 PL204 `Reply` has no `bdy` [did you mean `body`?]
#! 7:21 PL204 `sorted` has no `reversed` [did you mean `reverse`?]
