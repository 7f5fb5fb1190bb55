program p(wide: bool):
    "Say:"
    a = gen(int, pretty=true)
    b = gen("yes" | "no", pretty=wide)
    c = gen(list[int], pretty=1)
    d = gen(list[int] | none, pretty=wide)
    return [a, b, c, d]
#! 3:18 PL413 `pretty` goes with lists, dicts, records and JSON, not with int [leave it out]
#! 4:27 PL413 `pretty` goes with lists, dicts, records and JSON, not with "yes" | "no" [leave it out]
#! 5:31 PL405 `pretty` must be true or false, not 1
