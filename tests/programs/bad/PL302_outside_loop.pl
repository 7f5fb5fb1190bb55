program p():
    break
#! 2:5 PL302 `break` stands outside a loop
