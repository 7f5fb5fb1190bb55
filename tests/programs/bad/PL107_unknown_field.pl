record Reply:
    body: str


program p(reply: Reply, text: str):
    log reply.bdy
    log text.strp()
    log text.size
    fork 2 as drafts:
        score = gen(int)
    log drafts[0].scor
#! 6:15 PL107 Reply has no `bdy` [did you mean `body`?]
#! 7:14 PL107 a str has no `strp` [did you mean `strip`, `rstrip` or `lstrip`?]
#! 8:14 PL107 str has no `size`
#! 11:19 PL107 the branch has no `scor` [did you mean `score`?]
