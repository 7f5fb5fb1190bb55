program p(x: str):
    fork 2 as drafts:
        "a"
    adopt drafts
    adopt x
#! 4:11 PL309 `adopt` takes a branch of a fork, not a list of branches [write `adopt name[0]`, or `adopt name.arm`]
#! 5:11 PL309 `adopt` takes a branch of a fork, not str [write `adopt name[0]`, or `adopt name.arm`]
