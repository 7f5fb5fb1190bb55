const FIRST = SECOND + 1
const SECOND = 2
const THIRD = 1 / 0


program p(x: int = SECOND, y: int = x):
    log x + y
#! 1:15 PL207 `FIRST` can't be worked out before the program runs: `SECOND` is declared below it
#! 3:15 PL207 `THIRD` can't be worked out before the program runs: division by zero
#! 6:37 PL207 the default of `y` can't be worked out before the program runs: `x` has no value here
