program p(x: int):
    for i in 3:
        log i
    log 2 in x
    log x[0]
#! 2:14 PL209 3 has no items to go through
#! 4:9 PL209 int has no items to go through
#! 5:9 PL209 int has no items to go through
