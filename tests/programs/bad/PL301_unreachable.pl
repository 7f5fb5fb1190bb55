program p(x: int):
    for i in range(x):
        break
        log i
    return x
    log x
#! 4:9 PL301 this can never run: nothing goes on past the line above
#! 6:5 PL301 this can never run: nothing goes on past the line above
