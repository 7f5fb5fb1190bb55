program p():
    gen(max_tokens=0, temperature=-1, top_p=1.5, stop="")
    gen(max_tokens="ten", seed=1.5)
    select("a", "b", by="best")
    select(options="abc")


program q():
    gen(min_tokens=5, max_tokens=3)
    gen(min_tokens=3, max_tokens=3)
#! 2:20 PL405 `max_tokens` must be a whole number, at least 1, not 0
#! 2:35 PL405 `temperature` must be a number, at least 0, not -1
#! 2:45 PL405 `top_p` must be a number from 0 to 1, not 1.5
#! 2:55 PL405 `stop` must be a text that isn't empty, or a list of them, not ""
#! 3:20 PL405 `max_tokens` must be a whole number, at least 1, not "ten"
#! 3:32 PL405 `seed` must be a whole number, not 1.5
#! 4:25 PL405 `by` must be one of "sum", "mean", "prior", "greedy", not "best"
#! 5:20 PL405 `options` must be a list, not "abc"
#! 9:20 PL405 `min_tokens` must be at most `max_tokens` (3), not 5
