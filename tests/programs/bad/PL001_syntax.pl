program p(x: int):
    log x +
    log 1 2
    if x = 3:
        log x
    log "a" "b"
    log f"${x}"
#! 2:12 PL001 this line ends too early; expected an expression
#! 3:11 PL001 `2` can't stand here; expected the end of the line
#! 4:10 PL001 `=` can't stand in a condition [write `==` to compare]
#! 6:13 PL001 two strings stand side by side [put `+` or a comma between them, or use one """string""" over several lines]
#! 7:9 PL001 a string takes no `f` [drop the `f`: every string fills in `${...}`]
