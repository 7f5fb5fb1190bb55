record Reply:
    body: str
    urgency: int


program p(x: int):
    log Reply(body="x")
    y = p()
    log y
#! 7:9 PL203 `Reply` needs `urgency`
#! 8:9 PL203 `p` needs `x`
