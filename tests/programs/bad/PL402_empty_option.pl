program p():
    select("yes", "")
#! 2:19 PL402 an option of `select` is empty
