type A = str(min=3)
type B = set[int]
type C = int in 5..1
type D = list[int, 3..1]
type E = dict[int, str]
#! 1:10 PL012 `str(min=3)` is no type [only `str(max=N)` takes a bound like this, N a whole number]
#! 2:10 PL012 `set[int]` is no type [types with brackets are `list[T]`, `list[T, 1..5]` and `dict[str, T]`]
#! 3:10 PL012 `int in 5..1` is no type [ranges are `int in 1..5` and `float in 0..1`, the lower end first]
#! 4:10 PL012 `list[int, 3..1]` is no type [bounds stand as in `list[T, 1..5]`: whole numbers, the lower one first]
#! 5:10 PL012 `dict[int, str]` is no type [types with brackets are `list[T]`, `list[T, 1..5]` and `dict[str, T]`]
