program p(names: list[str]):
    select()
    select(names)
    select("a", options=names)
    select(options=[])
#! 2:5 PL401 `select` has nothing to choose from
#! 3:12 PL401 an option of `select` is a text, not a list [write `select(options=...)` for a list of them]
#! 4:17 PL401 `select` takes its options one by one, or as `options=`, not both
#! 5:20 PL401 `select` has nothing to choose from
