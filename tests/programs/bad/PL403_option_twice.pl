program p():
    select("yes", "no", "yes")
    select(options=["a", "b", "a"])
#! 2:25 PL403 `select` has the option "yes" twice
#! 3:31 PL403 `select` has the option "a" twice
