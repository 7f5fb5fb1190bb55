record Reply:
    body: str


program p():
    log Reply
    log p
#! 6:9 PL108 `Reply` is a record, not a value
#! 7:9 PL108 `p` is a program, not a value
