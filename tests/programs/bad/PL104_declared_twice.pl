record Reply:
    body: str

program Reply():
    pass
#! 4:9 PL104 `Reply` is declared twice
