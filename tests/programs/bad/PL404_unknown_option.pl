program p():
    gen(max_token=3, temprature=0.5)
    select("a", "b", rule="mean")
#! 2:9 PL404 `gen` has no option `max_token` [did you mean `max_tokens` or `min_tokens`?]
#! 2:22 PL404 `gen` has no option `temprature` [did you mean `temperature`?]
#! 3:22 PL404 `select` has no option `rule`
