program p():
    for i in range(3):
        fork 2 as b:
            log i
            break
        log b
    fork 2 as c:
        return 3
    log c
#! 5:13 PL304 `break` can't leave a branch of a fork
#! 8:9 PL304 `return` can't leave a branch of a fork [return after the fork, from a branch's variables]
