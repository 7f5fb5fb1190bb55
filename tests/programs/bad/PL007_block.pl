program p(x: int):
    if x:
    log x
    fork 3 as b:
#! 2:9 PL007 an indented block must follow [indent the lines that belong to it, or write `pass`]
#! 4:16 PL007 an indented block must follow [indent the lines that belong to it, or write `pass`]
