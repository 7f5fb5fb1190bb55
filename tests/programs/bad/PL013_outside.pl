user: "Hello"
x = 3

program p():
    pass
#! 1:1 PL013 `user` can't stand outside a declaration [put it inside a `program` or a `fragment`]
#! 2:1 PL013 `x` can't stand outside a declaration [put it inside a `program` or a `fragment`]
