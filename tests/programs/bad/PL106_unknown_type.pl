record Reply:
    body: string
    inner: Replay
#! 2:11 PL106 unknown type `string` [did you mean `str`?]
#! 3:12 PL106 unknown type `Replay` [did you mean `Reply`?]
