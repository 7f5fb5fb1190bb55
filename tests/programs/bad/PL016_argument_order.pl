program p():
    log round(digits=1, 2)
#! 2:25 PL016 an argument without a name stands after one with a name
