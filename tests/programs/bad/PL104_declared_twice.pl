record Reply:
    body: str


program Reply():
    pass
#! 5:9 PL104 `Reply` is declared twice
