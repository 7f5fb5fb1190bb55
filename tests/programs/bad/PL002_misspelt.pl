progam first(x: int):
    log x

program second(x: int):
    usr: "Hello"
    fro i in range(x):
        log i
    retrun x

program third(x: int):
    y = gne(int in 1..5)
    while x limt 3:
        log y
    fork 3 as b:
        z = gen(int)
        keep 1 buy z

program fourth(x: int):
    if x:
        log 1
    else if x > 2:
        log 2
#! 1:1 PL002 `progam` is not a keyword [did you mean `program`?]
#! 5:5 PL002 `usr` is not a keyword [did you mean `user` or `use`?]
#! 6:5 PL002 `fro` is not a keyword [did you mean `for`?]
#! 8:5 PL002 `retrun` is not a keyword [did you mean `return`?]
#! 11:9 PL002 `gne` is not a keyword [did you mean `gen`?]
#! 12:13 PL002 `limt` is not a keyword [did you mean `limit`?]
#! 16:16 PL002 `buy` is not a keyword [did you mean `by`?]
#! 21:5 PL002 `else if` is written as one word [write `elif`]
